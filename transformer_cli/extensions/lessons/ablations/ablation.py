"""An ablation: one experiment, trained as usual and again with one part changed, and a question about the outcome."""

from dataclasses import dataclass

SMALL_MACHINE = ("runtime.device=cpu", "runtime.threads=1", "runtime.precision=float32")
"""Settings of each ablation: with them, a CPU gives the same figures in each repetition."""

SEQUENCES = (
    "data.max_length=8", "data.num_pairs=30000", "training.max_steps=300", "training.warmup_steps=60",
    "training.log_every=20", "training.validate_every=300", "training.save_every=300",
    "validation.max_sentences=100", "validation.sequence_lengths=[5, 6, 7, 8]",
)  # fmt: skip
"""Settings that make copy.yaml, reverse.yaml and sort.yaml shorter: sequences of 5 to 8 symbols, 300 updates."""
PHRASES = (
    "data.num_pairs=20000", "model.d_model=128", "model.d_ff=256", "training.batch_tokens=512",
    "training.max_steps=300", "training.warmup_steps=60", "training.log_every=20", "training.validate_every=300",
    "training.save_every=300", "validation.max_sentences=100", "validation.scores=[bleu]", "decoding.beam_size=1",
)  # fmt: skip
"""Settings that make en-it.yaml shorter: a narrower model, 300 updates of 512 tokens."""
LONGER_PHRASES = (
    *PHRASES, "training.max_steps=500", "training.warmup_steps=100", "training.validate_every=500",
    "training.save_every=500",
)  # fmt: skip
"""The same with 500 updates, for what begins late."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the models that an ablation compares."""

    label: str
    """A few words, for the heading of a column."""
    settings: tuple[str, ...] = ()
    """Its settings, as in `--set`."""
    decoding: tuple[str, ...] = ()
    """Settings of decoding for its translations; variants that differ in nothing else share one training."""
    replaced: str | None = None
    """The name of the part of the model that is replaced (replaced_parts.py); None: the model as it is."""


@dataclass(frozen=True, slots=True)
class Ablation:
    """What is trained, what is measured, and what a reader can learn from it."""

    name: str
    subject: str
    """What is changed, and in which experiment: one line."""
    config: str
    """The name of a config that comes with the package."""
    settings: tuple[str, ...]
    """Settings for all variants: a smaller experiment than that of the config."""
    variants: tuple[Variant, ...]
    """The first one is the usual model."""
    measures: tuple[str, ...]
    """Names of measurements.py: MEASURES, in the order of the table."""
    drawn: str
    """The one of them that the picture shows beside the curves of the loss."""
    sample: str
    """A source text whose translations by all variants are shown."""
    question: str
    options: tuple[str, ...]
    """Predictions, of which the reader chooses one."""
    right: int
    """The number of the option that came out, from 1."""
    came_out: str
    """What was measured."""
    why: str
    """The explanation."""
    read_on: str
    """Files and sections where the part is explained."""
    cpu_seconds: int
    """CPU time of all its trainings, as measured on one core."""

    @property
    def num_trainings(self) -> int:
        """Number of models that are trained."""
        return len({(variant.settings, variant.replaced) for variant in self.variants})
