"""Faults of single texts that come from programs: encodings broken twice, entities of HTML, lost characters."""

import html
import re

REPLACEMENT_CHARACTER = "\ufffd"
# Entities that programs write into plain text; &c. and R&D; are no entities.
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|[a-zA-Z]{2,8}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")


def with_encoding_mended(text: str) -> str:
    """The text, with `perchÃ©` written as `perché`: UTF-8 that was read as another encoding."""
    if text.isascii():
        return text
    import ftfy
    from ftfy.badness import is_bad

    # Curly quotes and other ordinary characters also change under ftfy, where nothing is broken.
    if not is_bad(text):
        return text
    return ftfy.fix_encoding(text)


def without_entities(text: str) -> str:
    """The text, with `&quot;` and other entities of HTML as the characters that they mean."""
    if "&" not in text:
        return text
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text)
