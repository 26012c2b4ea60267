"""What a translator says of lines: those that were cut, divided, left as they are or left out, and those with doubts."""

import logging
from collections.abc import Sequence

from transformer_cli.decoding.doubts import UNSEEN, without_unseen_words
from transformer_cli.decoding.translation import Translation
from transformer_cli.process.errors import DataError

logger = logging.getLogger(__name__)
MAX_SHOWN_LINES = 5
"""As many line numbers, or words, are named; of the others, how many there are."""


def warn_of_lines(
    numbered: Sequence[tuple[int, Translation]],
    *,
    max_length: int,
    is_strict: bool,
    only_green: bool,
) -> None:
    """Warn of lines that a person should look at, with their numbers.

    Args:
        numbered: translations, each with the number of its line, from 1.
        max_length: how many tokens the model reads at once.
        is_strict: whether a sentence that was cut is an error.
        only_green: whether translations that are not green are left out; the others need no further message.

    Raises:
        DataError: a sentence was cut, and `is_strict`.
    """
    if cut := [number for number, translation in numbered if translation.is_cut]:
        if is_strict:
            raise DataError(
                f"line {cut[0]}: a sentence of more than {max_length} tokens, which the model cannot read at once",
                hint="divide the sentence, or leave out --strict to translate it in parts",
            )
        logger.warning(
            "%s: a sentence of more than %d tokens, which was translated in parts",
            _lines(cut),
            max_length,
        )
    if only_green:
        if left_out := [number for number, each in numbered if each.is_not_green]:
            logger.warning("%s: the translation is not green, so it was left out", _lines(left_out))
        numbered = [each for each in numbered if not each[1].is_not_green]
    if longer := [number for number, each in numbered if each.is_divided]:
        logger.warning(
            "%s: a sentence was translated clause by clause, because it is longer than those of the training, or because "
            "its translation as a whole was doubtful: look whether words are missing",
            _lines(longer),
        )
    if lost := [number for number, each in numbered if each.is_untranslated]:
        logger.warning(
            "%s: a sentence or a part of it was left as it is, because the model loses text of it or cannot read it",
            _lines(lost),
        )
    if with_doubts := [one for one in numbered if one[1].doubts]:
        _report_doubts(with_doubts)
    if copies := [number for number, each in numbered if each.is_partly_copied]:
        logger.warning(
            "%s: a sentence was left as it is, because the model loses the protected parts of it",
            _lines(copies),
        )


def _report_doubts(numbered: Sequence[tuple[int, Translation]]) -> None:
    """Warn of lines with doubts: one message for those with equal doubts, and one for words that training has not seen."""
    of_doubts: dict[tuple[str, ...], list[int]] = {}
    with_unseen, words = [], dict[str, None]()
    for number, each in numbered:
        if doubts := without_unseen_words(each.doubts):
            of_doubts.setdefault(doubts, []).append(number)
        for doubt in each.doubts:
            if doubt.startswith(UNSEEN):
                with_unseen.append(number)
                words |= dict.fromkeys(doubt.removeprefix(f"{UNSEEN}: ").split(", "))
    for doubts, doubtful in of_doubts.items():
        logger.warning("%s: the translation %s", _lines(doubtful), "; it ".join(doubts))
    if words:
        shown, num_more = ", ".join([*words][:MAX_SHOWN_LINES]), len(words) - MAX_SHOWN_LINES
        more = f" and {num_more} more" if num_more > 0 else ""
        logger.warning("%s: the translation %s: %s%s", _lines(with_unseen), UNSEEN, shown, more)


def _lines(numbers: Sequence[int]) -> str:
    """Line 3; lines 3, 5, 8; or the first of them and the number of the others."""
    shown = ", ".join(map(str, numbers[:MAX_SHOWN_LINES]))
    more = len(numbers) - MAX_SHOWN_LINES
    return f"line{'s' if len(numbers) > 1 else ''} {shown}" + (
        f" and {more} more" if more > 0 else ""
    )
