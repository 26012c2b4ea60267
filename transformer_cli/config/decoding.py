"""The settings of a translation: the search, its candidates, and what is done to texts before and after it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from transformer_cli.config.section import Contradiction, Count, Section, Switch

EngineName = Literal["torch", "ctranslate2"]
LengthNormalization = Literal["gnmt", "average"]
TokenLimit = Annotated[int, Field(strict=True, ge=1, le=65_536)]
LengthRatio = Annotated[float, Field(strict=True, gt=0.0, le=1000.0)]
MBR_SAMPLES = 32
"""Number of candidates of `decoding.mbr` with samples, unless it is given."""
WINDOW_LINES = 2000
"""Lines that are read before the first is translated: sorted by length, they need little padding."""


class SamplingConfig(Section):
    """How tokens are drawn. The filters act in the order of this table, on the probabilities at the temperature."""

    temperature: Annotated[float, Field(strict=True, gt=0.0, le=100.0)] = 1.0
    """T: a token is drawn with the probability softmax(log-probabilities / T). 1 is the distribution of the model; towards 0, sampling becomes greedy search."""
    top_k: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = None
    """Draw among the k most probable tokens only (Fan et al. 2018); absent: among all."""
    top_p: Annotated[float, Field(strict=True, gt=0.0, lt=1.0)] | None = None
    """Draw among the most probable tokens only: as few as have this probability together (nucleus sampling, Holtzman et al. 2020); absent: among all."""
    min_p: Annotated[float, Field(strict=True, gt=0.0, le=1.0)] | None = None
    """Draw only among tokens with at least this share of the probability of the most probable token (Nguyen et al. 2024); absent: among all."""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = 1
    """Seed of the samples. The sample of a line depends on this number, on the line and on its place in the input, but not on the other lines."""


OTHER_SEARCHES = ("sampling", "diversity", "mbr", "rescore")
"""Settings that ask for something else than plain beam search."""


class MbrConfig(Section):
    """How a translation is chosen by minimum Bayes risk (MBR)."""

    candidates: Annotated[int, Field(strict=True, ge=2, le=1000)] | None = None
    """Number of candidates of each sentence: the best hypotheses of the beam, at most beam_size, or samples. Absent: the whole beam, or 32 samples."""


RescoreKind = Literal["forward", "channel", "right-to-left"]


class RescoringModel(Section):
    """A further model that scores the translations of a beam."""

    run: Annotated[str, Field(min_length=1)]
    """The name of a run, or the path of a run or checkpoint folder."""
    kind: RescoreKind
    """forward: a model of the same direction; channel: one of the reverse direction (Li and Jurafsky 2016); right-to-left: one that was trained on targets whose words are in reverse order (Liu et al. 2016)."""
    weight: Annotated[float, Field(strict=True, gt=0.0, le=100.0)] = 0.5
    """Of its mean log-probability of the tokens; the model that translates has the weight 1."""


class RescoringConfig(Section):
    """Which models choose among the translations of a beam, together with the model that has found them."""

    models: Annotated[tuple[RescoringModel, ...], Field(min_length=1, max_length=16)]
    """At least one."""
    candidates: Annotated[int, Field(strict=True, ge=2, le=64)] | None = None
    """Number of hypotheses of each sentence that are scored, at most beam_size. Absent: the whole beam."""


class DiversityConfig(Section):
    """Diverse beam search (Vijayakumar et al. 2016): the beam is cut into groups that avoid each other's tokens."""

    groups: Annotated[int, Field(strict=True, ge=2, le=64)] = 2
    """Number of groups; beam_size must be a multiple of it."""
    strength: Annotated[float, Field(strict=True, gt=0.0, le=100.0)] = 0.5
    """lambda: what a token costs, in nats, for each hypothesis of an earlier group that has the token in the same place."""


class ShortlistConfig(Section):
    """Which target tokens a lexical shortlist lets a sentence use."""

    frequent: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 100
    """Number of most frequent target tokens, which every sentence may use."""
    best: Annotated[int, Field(strict=True, ge=1, le=250)] = 100
    """Number of most probable translations of each token of the source."""


class DecodingConfig(Section):
    """How translations are found."""

    engine: EngineName = "torch"
    """The library that computes translations. torch: PyTorch; ctranslate2: CTranslate2, which starts faster and is made for CPUs (pip install ".[ctranslate2]"). At its first use the model is converted, checked, and kept in the run folder; a likelihood, or a sentence with a constraint that CTranslate2 does not know, is computed by PyTorch. Validations during training use PyTorch."""
    beam_size: Annotated[int, Field(strict=True, ge=1, le=64)] = 4
    """Number of hypotheses per sentence in beam search; 1 is greedy search."""
    length_penalty: Annotated[float, Field(strict=True, ge=0.0, le=10.0)] = 0.6
    """alpha: the log-probability of a hypothesis is divided by ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14)."""
    length_normalization: LengthNormalization = "gnmt"
    """The divisor that length_penalty is the exponent of: gnmt as above; average: length^alpha, so that alpha 1 is the mean over the tokens."""
    coverage_penalty: Annotated[float, Field(strict=True, ge=0.0, le=100.0)] = 0.0
    """beta: to the score of a translation, beta times the sum over all source tokens of log(min(c, 1)) is added, where c is the attention that the token got from all target tokens (Wu et al. 2016, equation 14); 0: no such penalty."""
    num_best: Annotated[int, Field(strict=True, ge=1, le=64)] = 1
    """Number of translations per sentence, best first; at most beam_size. With sampling: number of samples."""
    max_length: TokenLimit | None = None
    """Largest number of tokens of a translation, [EOS] included, its forced prefix not counted; absent: twice the tokens of the source, plus 20, unless max_length_ratio is given."""
    max_length_ratio: LengthRatio | None = None
    """Largest number of tokens of a translation for each token of the source, [EOS] included in both; if max_length is given too, the smaller limit holds."""
    min_length: Annotated[int, Field(strict=True, ge=2, le=65_536)] | None = None
    """Smallest number of tokens of a translation, [EOS] included, its forced prefix not counted; absent: 1."""
    min_length_ratio: LengthRatio | None = None
    """Smallest number of tokens of a translation for each token of the source, [EOS] included in both; if min_length is given too, the larger limit holds, but never more than the largest number of tokens."""
    no_repeat_ngram_size: Annotated[int, Field(strict=True, ge=1, le=1000)] | None = None
    """n: no translation of a sentence contains the same n tokens in a row twice; absent: repetitions are allowed."""
    sampling: SamplingConfig | None = None
    """Draw tokens at random instead of searching for the most probable translation; absent: no sampling. It does not use beam_size."""
    mbr: MbrConfig | None = None
    """Choose the translation that is most similar to all candidates, by chrF (minimum Bayes risk); absent: the one with the best score."""
    rescore: RescoringConfig | None = None
    """Choose among the hypotheses of the beam by the sum of what several models say: the model itself and further ones, such as one of the reverse direction; absent: the model alone. Its scores stay in the output; validations during training do not rescore."""
    diversity: DiversityConfig | None = None
    """Diverse beam search, for num_best translations that differ more; absent: plain beam search."""
    shortlist: ShortlistConfig | None = None
    """On a CPU, let the output layer choose only among the frequent tokens and the probable translations of each token of the source, which tfm shortlist has learned (Jean et al. 2015, section 3.3): faster, and now and then another translation. Sampling, a coverage penalty, and sentences with terms or a forced prefix use the whole vocabulary, and so do validations during training. Absent: always the whole vocabulary."""
    split_sentences: Switch = True
    """Translate each sentence of a line by itself, and join the translations with the white space of the line; the source language decides where a sentence ends. The sequences of data.source sequences are never split."""
    keep_layout: Switch = True
    """Indentation, list marks, quote marks of e-mails, the columns of a table, and cells without a word stay as they are, and only the text between them is translated; false: the model reads the whole line. The sequences of data.source sequences are always read whole."""
    known_spellings: Switch = True
    """The model reads several spaces as one, and a word that is not in its vocabulary as one that differs only in capital letters, accents or typographic marks, such as "THE" or "citta"; false: such a word is unknown. Subwords know every word. The sequences of data.source sequences are never changed."""
    keep_text: Switch = True
    """No text disappears: a sentence with more tokens than 99 % of those of the training is translated clause by clause; one whose translation has no word, or is far shorter than all of the training, too; what still loses text stays as it is and is named. false: the translation is written as the model gives it, or as decoding.repair mends it. It has no effect on the sequences of data.source sequences."""
    repair: Switch = True
    """A translation that repeats itself, does not end, is far too long, copies the source, is in a wrong language or script, or has other numbers or units, other months or days of the week, or another negation than its source is searched again: with a wider beam, by samples, in two halves. The best of these is kept, and doubts that are left are named. Where a translation has lost a word, another one of the beam that has it takes its place. false: the translation stays as it is. Of several translations per sentence, the first one is then that which a single one would be. It has no effect on sampling, diverse beams and minimum Bayes risk, and on the sequences of data.source sequences."""
    allow_unknown: Switch = True
    """A translation may contain [UNK], which shows that a word is missing; false: the best other token is used."""
    batch_tokens: Count = 4096
    """Largest number of source tokens of a batch, padding included, hypotheses of the beam not counted."""

    @property
    def num_hypotheses(self) -> int:
        """The number of hypotheses of a sentence that are extended at each step."""
        return self.beam_size if self.sampling is None else self.num_best

    @property
    def num_candidates(self) -> int:
        """The number of hypotheses of a sentence from which the `num_best` best are chosen."""
        if self.rescore is not None:
            return self.rescore.candidates or self.beam_size
        if self.mbr is None:
            return self.num_best
        return self.mbr.candidates or (self.beam_size if self.sampling is None else MBR_SAMPLES)

    def best_of_beam(self, beam_size: int) -> Self:
        """These settings for one translation per sentence, by plain beam search or greedy search."""
        return self.model_copy(update={"beam_size": beam_size, "num_best": 1, **dict.fromkeys(OTHER_SEARCHES)})

    @model_validator(mode="after")
    def _settings_fit_together(self) -> Self:
        if self.sampling is None and self.num_best > self.beam_size:
            raise Contradiction(
                f"num_best ({self.num_best}) is above beam_size ({self.beam_size})",
                hint=f"raise decoding.beam_size to {self.num_best}, or lower decoding.num_best",
            )
        if self.mbr is not None:
            self._check_candidates()
        if self.rescore is not None:
            self._check_rescored()
        for name in ("length", "length_ratio"):
            smallest, largest = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if smallest is not None and largest is not None and smallest > largest:
                raise Contradiction(
                    f"min_{name} ({smallest}) is above max_{name} ({largest})",
                    hint=f"lower decoding.min_{name}, or raise decoding.max_{name}",
                )
        if self.sampling is not None and self.diversity is not None:
            raise Contradiction(
                "sampling and diversity are two searches", hint="leave out decoding.sampling or decoding.diversity"
            )
        if self.sampling is not None and self.coverage_penalty > 0.0:
            raise Contradiction(
                "coverage_penalty changes which translation is the best, but sampling draws any",
                hint="leave out decoding.coverage_penalty or decoding.sampling",
            )
        if self.diversity is not None and self.beam_size % self.diversity.groups:
            raise Contradiction(
                f"beam_size ({self.beam_size}) is not a multiple of diversity.groups ({self.diversity.groups})",
                hint="all groups have the same size: change decoding.beam_size or decoding.diversity.groups",
            )
        return self

    def _check_rescored(self) -> None:
        """Refuse what leaves nothing to choose from."""
        for name in ("sampling", "mbr"):
            if getattr(self, name) is not None:
                raise Contradiction(
                    f"rescore and {name} are two ways to choose a translation",
                    hint=f"leave out decoding.rescore or decoding.{name}",
                )
        if self.beam_size == 1:
            raise Contradiction(
                "rescore has nothing to choose from: beam_size is 1", hint="raise decoding.beam_size, such as to 8"
            )
        if self.num_candidates > self.beam_size:
            raise Contradiction(
                f"rescore.candidates ({self.num_candidates}) is above beam_size ({self.beam_size})",
                hint=f"raise decoding.beam_size to {self.num_candidates}, or lower decoding.rescore.candidates",
            )
        if self.num_best > self.num_candidates:
            raise Contradiction(
                f"num_best ({self.num_best}) is above rescore.candidates ({self.num_candidates})",
                hint=f"raise decoding.rescore.candidates to {self.num_best}, or lower decoding.num_best",
            )

    def _check_candidates(self) -> None:
        """Refuse minimum Bayes risk without candidates to choose from."""
        found = self.num_candidates
        if self.sampling is None and found > self.beam_size:
            raise Contradiction(
                f"mbr.candidates ({found}) is above beam_size ({self.beam_size})",
                hint=f"raise decoding.beam_size to {found}, or draw samples: decoding.sampling={{}}",
            )
        if self.num_best > found:
            raise Contradiction(
                f"num_best ({self.num_best}) is above mbr.candidates ({found})",
                hint=f"raise decoding.mbr.candidates to {self.num_best}, or lower decoding.num_best",
            )
        if found == 1:
            raise Contradiction(
                "mbr has nothing to choose from: beam_size is 1",
                hint="raise decoding.beam_size, or draw samples: decoding.sampling={}",
            )
