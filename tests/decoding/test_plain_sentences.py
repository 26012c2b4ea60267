"""The way of a plain sentence, which a reader of the code follows: it enters nothing that only other sentences need."""

import sys
from pathlib import Path
from types import FrameType

from transformer_cli import decoding
from transformer_cli.decoding import Translator

from .stub_translators import cut_after, stub_translator

FOLDER = Path(decoding.__file__).parent
FOLDERS = {FOLDER, FOLDER / "checks"}
# What has nothing to do with a sentence without prefix, glossary, spans, details, sampling or lost text.
OTHER_FILES = {
    "comet.py",
    "details.py",
    "glossary.py",
    "minimum_bayes_risk.py",
    "protected_spans.py",
    "line_form.py",
    "line_repairs.py",
    "signs_in_place.py",
    "reverse_reading.py",
    "terms_in_place.py",
}
OTHER_FUNCTIONS = {
    "TextPipeline.prefix_ids",
    "TextPipeline.normalize_given_target",
    "TextPipeline.required_terms",
    "TextPipeline.words_for_unknown",
    "TextKeeper._join_clauses",
    "TextKeeper._regain_clauses",
    "TextKeeper._regain_ellipses",
    "_in_form_of_clauses",
    "joined",
    "seeded",
    "_without_short_rivals",
}

# They work on sentences, and are none.
WORKERS = {"LineForm", "Repair", "TextKeeper", "TextPipeline", "Translator"}


def entered(translator: Translator, line: str) -> set[tuple[str, str]]:
    """Files and functions of decoding/ that one translation calls."""
    found: set[tuple[str, str]] = set()

    def see(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.parent in FOLDERS:
            found.add((file.name, frame.f_code.co_qualname))

    sys.setprofile(see)
    try:
        list(translator.translate([line]))
    finally:
        sys.setprofile(None)
    return found


def records(translator: Translator, line: str) -> set[str]:
    """The classes of the records that one translation makes of a sentence: their methods that make one are generated."""
    found: set[str] = set()

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == "<string>":
            values = frame.f_locals
            made = values.get("_cls") or type(values.get("self"))
            if made.__module__.startswith(("transformer_cli.decoding", "transformer_cli.text")):
                found.add(made.__qualname__)

    sys.setprofile(see)
    try:
        list(translator.translate([line]))
    finally:
        sys.setprofile(None)
    return found


def test_a_plain_sentence_is_at_most_six_records_on_its_way() -> None:
    found = records(stub_translator(cut_after()), "The train waits.")
    assert found - WORKERS == {"SourceText", "TextPart", "Request", "Hypothesis", "Alternative", "Translation"}


def test_a_plain_sentence_enters_nothing_that_only_other_sentences_need() -> None:
    found = entered(stub_translator(cut_after()), "The train waits.")
    assert ("translator.py", "Translator.translate_window") in found
    assert not OTHER_FILES & {file for file, _ in found}
    assert not OTHER_FUNCTIONS & {name for _, name in found}
