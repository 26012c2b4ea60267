"""The words *and*, *or* and *nor* of two texts: one that a translation lacks shows that a part of a list is lost.

Languages that are not in the table are never compared.
"""

import re
from collections.abc import Sequence

from transformer_cli.config import Direction
from transformer_cli.decoding.checks.numbers_in_text import word_list
from transformer_cli.text.languages import primary_language
from transformer_cli.text.lazy_patterns import lazy_pattern

# The words that join two parts, and those that a translation may have in their place. German joins in other ways, too: *blau-weiß*.
JOINING = {
    "en": ("and or", "nor but with as well then plus yet"),
    "es": ("y e o u", "ni sino pero con como entonces luego más"),
    "fr": ("et ou", "ni puis ainsi mais avec comme que qu soit plus alors voire sinon"),
    "it": ("e ed o od oppure", "né ma con come poi nonché più anche sia oltre"),
    "nl": ("en of", "noch maar met als ook dan plus evenals"),
    "pt": ("e ou", "nem mas com como então mais"),
}
_LONGEST_SENTENCE = 20  # words
# "Come and see", "three hundred and five", "more and more", "try and help", "nice and warm", "again and again": one thing, not two.
_NO_LIST = lazy_pattern(
    r"\b(?:come|came|go|goes|going|went|gone|try|tries|wait|stop|stay|sit|run|hurry|sure|hundred|thousand|million|now|up|back|nice|good|by"
    r"|here|there|through|sooner|first|once|far|on|over|out|half|black|rock) (?:and|or)\b"
    r"|\b(\w+) (?:and|or|y|o|et|ou|e|en|of) \1\b"
    r"|\b(?:and|or) (?:so|then|a half|a quarter|again|forth|on|over|all|such|others?)\b",
    re.IGNORECASE,
)


def lacks_joined(read: Sequence[str], written: Sequence[str], languages: Direction) -> bool:
    """Whether a translation has fewer words such as *and* than its source: *Select both departures* for *Select both departure and arrival*.

    Args:
        read: the words of the source in small letters.
        written: those of the translation.
        languages: of both.
    """
    here, there = map(primary_language, languages)
    if not {here, there} <= JOINING.keys() or len(read) > _LONGEST_SENTENCE:
        return False
    joining, said = word_list(JOINING[here][0]), word_list(" ".join(JOINING[there]))
    num_said = sum(map(said.__contains__, written))
    # Most translations have as many; the second question costs more. A first word joins the sentence to another one.
    if num_said >= sum(map(joining.__contains__, read[1:])):
        return False
    return num_said < sum(map(joining.__contains__, _NO_LIST.sub("", " ".join(read)).split()[1:]))
