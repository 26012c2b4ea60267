"""The clauses of two texts: whether a word for "please" is all that a translation has for one."""

import re

from transformer_cli.config import Direction
from transformer_cli.text.languages import primary_language

_PLEASE = {
    "de": r"bitte",
    "en": r"please",
    "es": r"por favor",
    "fr": r"s['\u2019]il (?:vous|te) pla[i\u00ee]t|veuillez",
    "it": r"per (?:favore|piacere|cortesia)|prego",
    "nl": r"alsjeblieft|alstublieft",
    "pt": r"por favor|se faz favor",
}
# English needs no comma behind these: If you see it please call me.
_BEGINS_LIKE_IF = re.compile(r"(?i)\W*(?:after|as|because|before|if|once|since|unless|when(?:ever)?)\b")
_CLAUSES = re.compile(r"[^.,;:!?\u2026\u2013\u2014]*[^\W_][^.,;:!?\u2026\u2013\u2014]*")


def has_only_please(source: str, translation: str, languages: Direction) -> bool:
    """Whether a translation has "please" in the place of a clause, and fewer other clauses: *Sono qui, per favore* for *I am here, please come in*."""
    here, there = (_PLEASE.get(primary_language(language)) for language in languages)
    if here is None or there is None or re.search(rf"(?i)\b(?:{here})\b", source) is None:
        return False
    source = _with_comma_before(here, source) if _BEGINS_LIKE_IF.match(source) else source
    (num_here, alone_here) = _clauses(source, here)
    (num_there, alone_there) = _clauses(_with_comma_before(there, translation), there)
    return alone_there > alone_here and num_there < num_here


def _with_comma_before(please: str, text: str) -> str:
    return re.sub(rf"(?i)(?<=\w)(?= (?:{please})\b)", ",", text)


def please_of(clause: str, language: str) -> str:
    """The word for "please" of a clause, behind a comma; nothing if it has none."""
    found = re.search(rf"(?i)\b(?:{_PLEASE.get(primary_language(language), '(?!)')})\b", clause)
    return f", {found[0]}" if found else ""


def _clauses(text: str, please: str) -> tuple[int, int]:
    """The number of clauses with other words than "please", and of those without."""
    clauses = _CLAUSES.findall(text)
    alone = sum(re.fullmatch(rf"(?i)\W*(?:{please})\W*", clause) is not None for clause in clauses)
    return len(clauses) - alone, alone
