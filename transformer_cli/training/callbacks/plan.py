"""The plan of a run: its size in numbers, and warnings about settings that do not fit together."""

from dataclasses import dataclass
from typing import NamedTuple

from transformer_cli.config import Config, FilesData, HubData, SequencesData, TrainingConfig
from transformer_cli.data.batches.grouping import UpdateSize, estimated_updates
from transformer_cli.data.batches.resampled import training_pairs
from transformer_cli.data.preparation import PreparedData
from transformer_cli.data.selection.held_out import pairs_to_validate
from transformer_cli.text.vocabulary import NUM_FIXED_ENTRIES, SUBWORD_VOCAB_SIZE
from transformer_cli.training.schedules import learning_rate

# The drop-first exercise spends two thirds of its updates on the warm-up, and learns.
MAX_WARMUP_SHARE = 0.75
# With fewer tokens for each entry, most entries of a vocabulary occur too rarely to be learned.
MIN_OCCURRENCES = 10
MIN_VALIDATION_SENTENCES = 20
MIN_UPDATES_PER_EPOCH = 5
# The advice is never to take less than this: a smaller vocabulary has hardly an entry beside the bytes, and a
# smaller batch holds no longer sentence.
MIN_SUBWORD_VOCABULARY = NUM_FIXED_ENTRIES + 20
MIN_BATCH_TOKENS = 64
# With a larger share for validation, too little is left for training.
_LARGEST_SHARE = 0.4
_MORE_PAIRS = "add more pairs: the corpus is too small"


class Vocabulary(NamedTuple):
    """One vocabulary, and how often its entries occur in an epoch."""

    side: str
    size: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a run."""

    num_pairs: int
    """Pairs that the model reads in an epoch."""
    num_target_tokens: int
    """Target tokens of an epoch, [EOS] included."""
    updates_per_epoch: int
    num_steps: int
    """The last step of the run, unless `training.patience` ends it earlier."""
    num_validation_sentences: int
    vocabularies: tuple[Vocabulary, ...]
    """One for each language, or the shared one."""
    num_held_out: int | None = None
    """All pairs of the validation split, of which each validation may use a part; None: not counted."""

    @classmethod
    def of(cls, config: Config, data: PreparedData, num_steps: int) -> "Plan":
        """The plan for prepared data; an epoch is measured on its first 200,000 pairs."""
        _, order = training_pairs(data.train, data.tokenizers, config)
        num_pairs, report = order.num_pairs(), data.report
        visits = num_pairs / max(1, sum(data.train.corpus_sizes))
        target = report.target.train
        has_end = not isinstance(config.data, SequencesData) or config.data.end_symbol
        num_target_tokens = target.num_tokens + has_end * target.num_sentences
        sides = {"source": report.source, "target": report.target}
        vocabularies = [
            Vocabulary(name, side.vocab_size, side.train.num_tokens) for name, side in sides.items()
        ]
        if config.tokenizer.shared:
            num_tokens = sum(one.num_tokens for one in vocabularies)
            vocabularies = [Vocabulary("shared", report.source.vocab_size, num_tokens)]
        return cls(
            num_pairs=num_pairs,
            num_target_tokens=round(visits * num_target_tokens * order.growth()),
            updates_per_epoch=estimated_updates(order, UpdateSize.of(config.training)),
            num_steps=num_steps,
            num_validation_sentences=len(pairs_to_validate(config, data.validation)),
            vocabularies=tuple(vocabularies),
            num_held_out=len(data.validation),
        )

    def times(self, interval: int) -> int:
        """How often a task runs that is due every `interval` steps and at the end."""
        return -(-self.num_steps // interval)

    def lines(self, config: Config) -> list[str]:
        """The plan as lines of text."""
        training, d_model = config.training, config.model.d_model
        top = min(max(training.warmup_steps, 1), self.num_steps)
        highest, last = (learning_rate(n, training, d_model=d_model) for n in (top, self.num_steps))
        after = f" after {top:,} update{'s' * (top > 1)}" if training.warmup_steps else ""
        at_end = f"{last:.2g} at the end"
        if training.schedule == "plateau":
            at_end = f"then less whenever {training.best_metric} stops improving"
        return [
            f"plan: {self.num_pairs:,} training pairs, {self.num_steps:,} updates of about "
            f"{self.num_target_tokens / self.updates_per_epoch:,.0f} target tokens, "
            f"{self.num_steps / self.updates_per_epoch:,.1f} epochs of "
            f"{self.updates_per_epoch:,} updates",
            f"plan: validations: {self.times(training.validate_every):,}, of "
            f"{_counted(self.num_validation_sentences, 'sentence')}; saves: {self.times(training.save_every):,}, "
            f"and each new best; learning rate: {highest:.2g}{after}, {at_end}",
        ]


def warnings(plan: Plan, config: Config) -> list[str]:
    """One text for each problem of a plan: its numbers, and a setting with a value that fits."""
    found = [
        *_of_the_schedule(plan, config),
        *_of_the_intervals(plan, config),
        *_of_the_plateau(plan, config.training),
        *_of_the_average(plan, config.training),
        *_of_the_update(plan, config.training),
        *_of_the_batch(plan, config.training),
    ]
    if not isinstance(config.data, SequencesData):  # the exercises are small on purpose
        # The vocabularies of init_from were learned from another corpus.
        is_new = config.training.init_from is None
        found += [*(_of_the_vocabularies(plan, config) if is_new else []), *_of_the_corpus(plan, config)]  # fmt: skip
    return found


def _of_the_schedule(plan: Plan, config: Config) -> list[str]:
    warmup_steps, num_steps = config.training.warmup_steps, plan.num_steps
    if warmup_steps <= MAX_WARMUP_SHARE * num_steps:
        return []
    share = "all" if warmup_steps >= num_steps else f"{warmup_steps / num_steps:.0%}"
    return [
        f"training.warmup_steps is {warmup_steps:,} and the run has {num_steps:,} updates: the learning rate "
        f"rises in {share} of them, so the model learns little; set training.warmup_steps to about "
        f"{_one_or_two_digits(num_steps / 10)}, or train longer"
    ]


def _of_the_intervals(plan: Plan, config: Config) -> list[str]:
    training, num_steps = config.training, plan.num_steps
    found, fitting = [], _one_or_two_digits(num_steps / 10)
    is_validated_once = training.validate_every >= num_steps > 20  # a shorter one is a trial
    if is_validated_once:
        found.append(
            f"training.validate_every is {training.validate_every:,} and the run has {num_steps:,} updates: "
            "there is no validation and no sample before the end, and no choice of the best checkpoint; "
            f"set training.validate_every to about {fitting}"
        )
    if is_validated_once and training.save_every >= num_steps:
        found.append(
            f"training.save_every is {training.save_every:,} and the run has {num_steps:,} updates: nothing is "
            "saved before the end, so a crash of the machine loses the whole run; "
            f"set training.save_every to about {fitting}"
        )
    num_validations = plan.times(training.validate_every)
    if training.patience is not None and training.patience >= num_validations:
        found.append(
            f"training.patience is {training.patience} and the run has {num_validations} validations, of "
            "which the first is always a new best: patience cannot end the run; "
            f"lower training.patience, or set training.validate_every to about {_one_or_two_digits(num_steps / (3 * training.patience))}"
        )
    return found


def _of_the_update(plan: Plan, training: TrainingConfig) -> list[str]:
    wanted, size = training.update_tokens, plan.num_target_tokens / plan.updates_per_epoch
    # An update takes as many batches as come closest to it, so with one batch it may be too large by a half.
    if wanted is None or size < 1.5 * wanted or not isinstance(training.batch_tokens, int):
        return []
    fitting = max(MIN_BATCH_TOKENS, _one_or_two_digits(training.batch_tokens * wanted / size))
    return [
        f"training.update_tokens is {wanted:,}, but a single batch has about {size:,.0f} target tokens, so each update is one "
        f"batch; set training.batch_tokens to about {fitting:,}, or raise training.update_tokens"
    ]


def _of_the_batch(plan: Plan, training: TrainingConfig) -> list[str]:
    size, num_batches = training.batch_tokens, plan.updates_per_epoch * training.accumulate
    if not isinstance(size, int) or training.update_tokens is not None:
        return []
    if plan.num_pairs < 2 or num_batches <= 0.9 * plan.num_pairs:
        return []
    fitting = _one_or_two_digits(32 * plan.num_target_tokens / plan.num_pairs)
    return [
        f"training.batch_tokens is {size:,}, and most sentence pairs are longer, so nearly every batch is a single pair; "
        f"set training.batch_tokens to {max(MIN_BATCH_TOKENS, fitting):,} or more"
    ]


def _of_the_plateau(plan: Plan, training: TrainingConfig) -> list[str]:
    patience, num_validations = training.patience_of_plateau, plan.times(training.validate_every)
    if patience is None or patience < num_validations:
        return []
    return [
        f"training.plateau_patience is {patience} and the run has {_counted(num_validations, 'validation')}, of "
        "which the first is always a new best: the learning rate cannot fall; lower training.plateau_patience, or "
        f"set training.validate_every to about {_one_or_two_digits(plan.num_steps / (3 * patience))}"
    ]


def _of_the_average(plan: Plan, training: TrainingConfig) -> list[str]:
    wanted = training.average_last
    interval, noun = ("save_every", "save")
    if training.average_of == "best":
        interval, noun = ("validate_every", "validation")
    number = plan.times(getattr(training, interval))
    if wanted is None or wanted <= number:
        return []
    result = "there is no average" if number < 2 else f"the average has only {number:,} checkpoints"
    advice = [] if number < 2 else ["lower training.average_last"]
    if wanted <= plan.num_steps:
        fitting = plan.num_steps // wanted
        advice += [f"set training.{interval} to {fitting:,}{' or less' if fitting > 1 else ''}"]
    return [
        f"training.average_last is {wanted:,} and the run has {_counted(number, noun)}: {result}; {', or '.join(advice) or 'train longer'}"
    ]


def _of_the_vocabularies(plan: Plan, config: Config) -> list[str]:
    settings, found = config.tokenizer, list[str]()
    if settings.kind == "sentencepiece":
        return found
    has_subwords = settings.kind != "wordlevel"
    asked = settings.vocab_size or SUBWORD_VOCAB_SIZE
    for side, size, num_tokens in plan.vocabularies:
        num_learned = size - (NUM_FIXED_ENTRIES if has_subwords else 0)
        fitting = max(400, _one_or_two_digits(num_tokens / 30))
        wanted = min(fitting, _one_or_two_digits(0.7 * size))
        advice = f"set tokenizer.vocab_size to about {wanted:,}"
        # A vocabulary of bytes alone is refused, or learns nothing.
        if wanted < MIN_SUBWORD_VOCABULARY:
            advice = _MORE_PAIRS
        if not has_subwords:
            advice = f"take subwords: tokenizer.kind: bpe, tokenizer.vocab_size: {fitting}"
        if num_tokens < MIN_OCCURRENCES * num_learned:
            found.append(
                f"the {side} vocabulary has {size:,} entries, and the corpus only {num_tokens:,} tokens: an entry "
                f"occurs {num_tokens / num_learned:.1f} times on average, too rarely to be learned; {advice}"
            )
        elif settings.kind == "bpe" and settings.min_frequency == 1 and size < asked:
            found.append(
                f"tokenizer.vocab_size is {asked:,}, and the corpus gives only {size:,} entries for the {side} "
                "vocabulary: every word is an entry of its own, so nothing is learned about parts of words; "
                + advice
            )
    return found


def _of_the_corpus(plan: Plan, config: Config) -> list[str]:
    found, training = [], config.training
    num_sentences = plan.num_validation_sentences
    if num_sentences < MIN_VALIDATION_SENTENCES:
        found.append(
            f"validation uses {_counted(num_sentences, 'sentence')}: scores of so few are mostly chance; "
            + _advice_on_validation(plan, config)
        )
    if plan.updates_per_epoch < MIN_UPDATES_PER_EPOCH:
        name, size = _size_of_an_update(training)
        wanted = _one_or_two_digits(
            size * training.accumulate * plan.updates_per_epoch / (4 * MIN_UPDATES_PER_EPOCH)
        )
        also = " and training.accumulate to 1" if training.accumulate > 1 else ""
        advice = f"set training.{name} to about {wanted}{also}"
        if wanted < (2 if name == "batch_sentences" else MIN_BATCH_TOKENS):
            advice = _MORE_PAIRS
        found.append(
            f"training.{name} is {size:,}: an epoch has only {_counted(plan.updates_per_epoch, 'update')}, "
            f"so the model learns slowly from each pair; {advice}"
        )
    return found


def _size_of_an_update(training: TrainingConfig) -> tuple[str, int]:
    """The setting under `training` that decides how large an update is, and its value."""
    sizes = {
        name: getattr(training, name)
        for name in ("update_tokens", "batch_sentences", "batch_tokens")
    }
    return next((name, size) for name, size in sizes.items() if isinstance(size, int))


def _advice_on_validation(plan: Plan, config: Config) -> str:
    """How validation gets enough sentences."""
    limit, num_sentences = config.validation.max_sentences, plan.num_validation_sentences
    has_more = plan.num_held_out is None or plan.num_held_out >= MIN_VALIDATION_SENTENCES
    if limit is not None and num_sentences == limit and has_more:
        return "set validation.max_sentences to 200"
    is_drawn = isinstance(config.data, FilesData | HubData) and any(
        corpus.split is None for corpus in config.data.corpora
    )
    if not is_drawn:
        return "use more pairs for the validation split"
    share = 2 * MIN_VALIDATION_SENTENCES / max(1, plan.num_pairs + num_sentences)
    if share > _LARGEST_SHARE:
        return _MORE_PAIRS
    return f"set data.validation_share to about {max(0.05, share):.2g}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _one_or_two_digits(number: float) -> int:
    """A whole number, 1 or more, with one or two significant digits."""
    return max(1, int(float(f"{number:.1g}" if number < 1000 else f"{number:.2g}")))
