"""The titles of what every training records, over the panels of a plot; scores have titles of their own."""

LOSS = "loss"
TITLES = {
    LOSS: "Loss, nats per target token",
    "objective": "Objective, nats per target token",
    "perplexity": "Perplexity",
    "learning_rate": "Learning rate",
    "gradient_norm": "Gradient norm, before clipping",
    "gradient_scale": "Gradient scale of float16",
    "target_tokens_per_second": "Speed, target tokens per second",
    "source_tokens_per_second": "Speed, source tokens per second",
    "num_skipped": "Skipped updates",
}
