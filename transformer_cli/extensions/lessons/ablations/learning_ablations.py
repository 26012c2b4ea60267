"""Ablations of learning: the path of the gradient, the first updates, and what the decoder reads."""

from transformer_cli.extensions.lessons.ablations.ablation import SEQUENCES, Ablation, Variant
from transformer_cli.extensions.lessons.ablations.attention_ablations import ON_SEQUENCES

LEARNING = (
    Ablation(
        name="no-residuals",
        subject="layers without residual connections, 3 + 3 layers, on the task copy",
        config="copy.yaml",
        settings=(*SEQUENCES, "model.encoder_layers=3", "model.decoder_layers=3"),
        variants=(
            Variant("with residuals"),
            Variant("no residuals", replaced="residual connections"),
        ),
        measures=ON_SEQUENCES,
        drawn="symbols",
        sample="1 2 3 4 5 6",
        question="Each sub-layer replaces its input instead of adding to it: f(norm(x)) instead of x + f(norm(x)). The "
        "encoder and the decoder have 3 layers each. What happens?",
        options=(
            "The model learns the task a little more slowly.",
            "The model learns almost nothing in the same time.",
            "The loss becomes NaN at once.",
        ),
        right=2,
        came_out="Seed 1: after 300 updates the validation loss is 1.76; with residual connections it is 0.007. With the target given, 27.5 % of the tokens are right, which is little more than guessing.",
        why="With x + f(x), the token and its position reach each layer unchanged, and the gradient reaches each layer "
        "directly. Without it, all information must pass through each of the 15 sub-layers, and attention with random weights mixes "
        "all positions into one mean. After a few such layers the positions can hardly be told apart.",
        read_on="model/layers.py: pre; He et al. 2016; Vaswani et al. 2017, section 3.1",
        cpu_seconds=34,
    ),
    Ablation(
        name="post-norm-without-warm-up",
        subject="pre-norm and post-norm without warm-up, 6 + 6 layers, on the task copy",
        config="copy.yaml",
        settings=(
            *SEQUENCES,
            "training.warmup_steps=0",
            "training.schedule=constant",
            "training.learning_rate=1e-3",
            "model.encoder_layers=6",
            "model.decoder_layers=6",
        ),
        variants=(
            Variant("pre-norm"),
            Variant(
                "post-norm, warm-up", ("model.norm_placement=post", "training.warmup_steps=100")
            ),
            Variant("post-norm", ("model.norm_placement=post",)),
        ),
        measures=("training loss", "loss", "symbols"),
        drawn="symbols",
        sample="1 2 3 4 5 6",
        question="Six encoder and six decoder layers learn at a constant rate of 1e-3. Pre-norm normalises the input of each sub-layer; post-norm, as in the paper, normalises the sum behind it. The first model is pre-norm, without warm-up. The others are post-norm, with a warm-up of 100 updates and without any. Which ones learn to copy in 300 updates?",
        options=(
            "All three, post-norm a little more slowly.",
            "Pre-norm only, or far better than the others.",
            "Post-norm without warm-up learns fastest, because its first steps are large.",
        ),
        right=2,
        came_out="Seed 1: after 300 updates the validation loss of pre-norm is 0.02, that of post-norm with warm-up 1.19, and that of post-norm without warm-up 1.36. Pre-norm has 99.6 % of the symbols right when it generates, both others have 26.5 %. So the warm-up helps, but here the place of the norm matters much more.",
        why="With pre-norm, the path of residual connections is free from the first layer to the last, and so is the path of the gradient. With post-norm, each sum is normalised, and the gradient passes through 12 norms in the encoder and 18 in the decoder. At the start the gradients of the last layers are then large (Xiong et al. 2020), so the first updates must be small: the warm-up. Post-norm models do learn with more updates and a smaller rate; configs/memorise-shifted.yaml is one.",
        read_on='model/layers.py: pre, post; Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture"',
        cpu_seconds=87,
    ),
    Ablation(
        name="target-not-shifted",
        subject="a decoder whose input is the target itself, on the task copy",
        config="copy.yaml",
        settings=(*SEQUENCES, "data.end_symbol=false"),
        variants=(
            Variant("shifted"),
            Variant("not shifted", ("data.shift_target=false",)),
        ),
        measures=ON_SEQUENCES,
        drawn="symbols",
        sample="1 2 3 4 5 6",
        question="Usually the decoder reads the target shifted right by one position, behind [SOS], so position t has "
        "seen the tokens before t. Now the shift is forgotten: position t reads token t and must predict token t. What will you "
        "notice first?",
        options=(
            "The training loss does not fall.",
            "The training loss is excellent, and so is the validation loss.",
            "The validation loss rises while the training loss falls.",
        ),
        right=2,
        came_out="Seed 1: both losses are 0.000 (0.008 and 0.006 with the shift). When it generates, 10.2 % of the symbols are right, as many as by chance, and 1 2 3 4 5 6 becomes 8 8 8 8 8 8. With the shift, 99.8 % are right.",
        why="The right answer is the input, so the decoder only has to pass it on: the loss is almost 0 from the first report on. The validation loss does not warn, because it is computed with the same input. Only generating shows the error. There the input is the token that was written last, and the model writes it again and again.",
        read_on="configs/memorise.yaml and configs/memorise-shifted.yaml; data/updates.py",
        cpu_seconds=26,
    ),
)
