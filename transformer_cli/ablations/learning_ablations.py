"""x."""

from transformer_cli.ablations.ablation import Ablation, Variant
from transformer_cli.ablations.attention_ablations import SHORT
from transformer_cli.ablations.text_ablations import SMALL

LEARNING = (
    Ablation(
        name="post-norm-without-warm-up",
        subject="post-norm-without-warm-up",
        config="copy.yaml",
        settings=(
            *SHORT,
            "training.max_steps=200",
            "model.encoder_layers=6",
            "model.decoder_layers=6",
            "training.warmup_steps=0",
            "training.schedule=constant",
            "training.learning_rate=1e-3",
            "training.clip_norm=null",
        ),
        variants=(
            Variant("pre-norm"),
            Variant(
                "post-norm, warm-up", ("model.norm_placement=post", "training.warmup_steps=100")
            ),
            Variant("post-norm, no warm-up", ("model.norm_placement=post",)),
        ),
        measures=("training loss", "loss", "symbols"),
        sample="1 2 3 4 5 6",
        question="",
        options=(),
        right=1,
        came_out="",
        why="",
        read_on="",
        cpu_seconds=0,
    ),
    Ablation(
        name="constant-learning-rate",
        subject="constant-learning-rate",
        config="en-it.yaml",
        settings=(*SMALL, "training.learning_rate=4e-3"),
        variants=(Variant("cosine"), Variant("constant", ("training.schedule=constant",))),
        measures=("training loss", "loss", "bleu"),
        sample="Where is the station?",
        question="",
        options=(),
        right=1,
        came_out="",
        why="",
        read_on="",
        cpu_seconds=0,
    ),
    Ablation(
        name="small-tables",
        subject="small-tables",
        config="en-it.yaml",
        settings=(*SMALL, "training.max_steps=200"),
        variants=(
            Variant("Xavier, scaled"),
            Variant("PyTorch, scaled", ("model.init=pytorch",)),
            Variant("Xavier, not scaled", ("model.scale_embeddings=false",)),
        ),
        measures=("training loss", "loss", "bleu"),
        sample="Where is the station?",
        question="",
        options=(),
        right=1,
        came_out="",
        why="",
        read_on="",
        cpu_seconds=0,
    ),
)
