"""Codes of languages as clients write them: in any case, with a region, or as other servers call them."""

from collections.abc import Iterable

from transformer_cli.text.languages import primary_language

# The codes of LibreTranslate before it took those of BCP 47, and the same languages in BCP 47.
_OTHER_CODES = {"pb": "pt-br", "zh": "zh-hans", "zt": "zh-hant", "nb": "no"}


def served_language(given: str, served: Iterable[str]) -> str | None:
    """The language of a server that a client means; None if the server does not have it.

    Args:
        given: such as it, IT, it-IT or pb.
        served: the languages of the server, as its runs call them.
    """
    by_code = {_plain(language): language for language in served}
    code = _plain(given)
    back = {new: old for old, new in _OTHER_CODES.items()}
    for name in (code, _OTHER_CODES.get(code), back.get(code), primary_language(code)):
        if name in by_code:
            return by_code[name]
    # A language without a region also means the only one that the server has of it.
    regional = [language for name, language in by_code.items() if primary_language(name) == code]
    return regional[0] if len(regional) == 1 else None


def _plain(code: str) -> str:
    return code.strip().replace("_", "-").lower()
