"""The faults of single pairs: each check looks at one pair, and at digests of the pairs before it."""

from collections.abc import Iterator
from pathlib import Path

from transformer_cli.config import CleaningConfig
from transformer_cli.data.pairs import SentencePair
from transformer_cli.data.selection import DigestSet, alterations, drops
from transformer_cli.data.sources.lines import TOO_LONG
from transformer_cli.extensions.corpora.findings import Example, Findings
from transformer_cli.extensions.corpora.held_out_forms import HeldOutForms
from transformer_cli.extensions.corpora.likeness import (
    is_nearly_untranslated,
    plain_digest,
    plain_form,
)
from transformer_cli.extensions.corpora.numbered_pairs import (
    NOT_UTF_8,
    NUL_BYTE,
    CorpusPart,
    NumberedPair,
)
from transformer_cli.extensions.corpora.spoken_languages import LanguageDetector, spoken_pair
from transformer_cli.extensions.corpora.text_faults import (
    REPLACEMENT_CHARACTER,
    with_encoding_mended,
    without_entities,
)

# The rules that training applies, and the faults that they mend.
_FAULT_OF_RULE = {
    "remove_control_characters": "control_characters",
    "normalize_invisible": "invisible_characters",
    "normalize_unicode": "not_nfc",
    "drop_empty": "empty",
    "drop_equal": "equal",
    "min_words": "too_few_words",
    "max_words": "too_many_words",
    "max_characters": "too_many_characters",
    "max_length_ratio": "length_ratio",
    "drop_duplicates": "duplicates",
}
_FAULT_OF_DAMAGE = {NOT_UTF_8: "not_utf_8", NUL_BYTE: "nul_bytes", TOO_LONG: "too_long"}
LANGUAGE_FAULTS = ("swapped", "wrong_source_language", "wrong_target_language")


class PairChecks:
    """The checks of the pairs of one part.

    Args:
        rules: gives the limits for lengths; a limit that it does not set has its default.
        held_out: the validation and test pairs, with which pairs are compared.
        folder: where to put large tables of digests; it exists.
    """

    def __init__(
        self,
        part: CorpusPart,
        rules: CleaningConfig,
        detector: LanguageDetector,
        held_out: HeldOutForms,
        folder: Path,
    ) -> None:
        self.findings = Findings()
        self.num_examined_languages = 0
        self._part, self._detector, self._held_out = part, detector, held_out
        for name in ("seen", "forms"):
            (folder / name).mkdir()
        self._seen, self._seen_forms = DigestSet(folder / "seen"), DigestSet(folder / "forms")
        complete = _every_rule(rules)
        self._alterations = list(alterations(complete))
        self._drops = list(drops(complete, frozenset(), self._seen))

    def look(self, pair: NumberedPair, *, at_languages: bool, at_leakage: bool) -> None:
        """Check a pair, and note its faults."""
        if pair.damage:
            self._note(_FAULT_OF_DAMAGE[pair.damage], pair)
        if pair.damage in ("", NOT_UTF_8):
            text = SentencePair(pair.source, pair.target)
            self._look_at_text(pair, text, at_languages=at_languages, at_leakage=at_leakage)

    def _look_at_text(
        self, pair: NumberedPair, text: SentencePair, *, at_languages: bool, at_leakage: bool
    ) -> None:
        faults = set(self._faults_of_rules(text))
        for fault in faults:
            self._note(fault, pair)
        for fault, note in _faults_of_texts(text, may_be_lost=not pair.damage):
            self._note(fault, pair, note)
        if "empty" in faults:
            return
        forms = plain_form(pair.source), plain_form(pair.target)
        if "duplicates" not in faults and all(forms) and self._is_repeated(forms):
            self._note("near_duplicates", pair)
        if at_leakage:
            self._look_for_leakage(pair, text, forms)
        if "equal" in faults:
            return
        if is_nearly_untranslated(*forms):
            self._note("nearly_equal", pair)
        if at_languages:
            self._look_at_languages(pair, text)

    def close(self) -> None:
        """Free the tables of digests."""
        self._seen.close()
        self._seen_forms.close()

    def _note(self, fault: str, pair: NumberedPair, note: str = "") -> None:
        place = self._part.place(pair.line)
        self.findings.note(fault, Example(place, pair.source, pair.target, note))

    def _faults_of_rules(self, pair: SentencePair) -> Iterator[str]:
        for rule, alter in self._alterations:
            altered = SentencePair(*alter(pair.source, pair.target))
            if altered != pair:
                yield _FAULT_OF_RULE[rule]
                pair = altered
        is_empty = False
        for rule, must_drop in self._drops:
            # Two empty sides are equal, and one empty side is short: that is one fault and not three.
            if not is_empty and must_drop(pair):
                yield _FAULT_OF_RULE[rule]
                is_empty = rule == "drop_empty"

    def _is_repeated(self, forms: tuple[str, str]) -> bool:
        return not self._seen_forms.add(plain_digest(*forms))

    def _look_for_leakage(
        self, pair: NumberedPair, text: SentencePair, forms: tuple[str, str]
    ) -> None:
        overlap = self._held_out.overlap(text, forms)
        if overlap is not None and self._part.split != "test":
            self._note(overlap, pair)
        elif overlap in ("leakage", "near_leakage"):
            self._note("shared_test", pair)

    def _look_at_languages(self, pair: NumberedPair, text: SentencePair) -> None:
        self.num_examined_languages += 1
        spoken = spoken_pair(self._detector, text, self._part.direction)
        if spoken.is_exchanged:
            self._note("swapped", pair, spoken.note)
            return
        for is_wrong, fault in zip(spoken.are_wrong, LANGUAGE_FAULTS[1:], strict=True):
            if is_wrong:
                self._note(fault, pair, spoken.note)


def _every_rule(rules: CleaningConfig) -> CleaningConfig:
    """The rules with their own limits, and with the default where a rule is switched off."""
    defaults = CleaningConfig()
    return CleaningConfig(
        **{name: getattr(rules, name) or getattr(defaults, name) for name in _FAULT_OF_RULE}
    )


def _faults_of_texts(pair: SentencePair, *, may_be_lost: bool) -> Iterator[tuple[str, str]]:
    for fault, mend in (
        ("broken_encoding", with_encoding_mended),
        ("html_entities", without_entities),
    ):
        for text in pair[:2]:
            if (mended := mend(text)) != text:
                yield fault, f"mended: {mended}"
                break
    if may_be_lost and any(REPLACEMENT_CHARACTER in text for text in pair[:2]):
        yield "lost_characters", ""
