"""Strings of programs: their tags, the branches of ICU messages, and which of them are texts for people."""

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, count

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.character_encoding import DecodedText
from transformer_cli.extensions.documents.files_in_strings import file_in_string
from transformer_cli.extensions.documents.html import (
    BLOCKS,
    CODE,
    IMPLIED_END,
    TokenKind,
    ends_of_elements,
    html_tokens,
    is_inline_element,
    is_kept_tag,
)
from transformer_cli.extensions.documents.inline_text import DIVISION, has_too_much_markup
from transformer_cli.extensions.documents.segments import (
    InlinePart,
    InnerText,
    Markup,
    Piece,
    Role,
    Segment,
    Slot,
    SplicedDocument,
    TranslatedSegment,
    WithoutWords,
    merged,
    nested,
    plain_text,
    rendered,
)
from transformer_cli.extensions.documents.xml import Element, XmlKind, XmlText, escaped_xml
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import primary_language
from transformer_cli.text.normalization import has_letter
from transformer_cli.text.span_kinds import TOUCHING_SPECIFICATION
from transformer_cli.text.spans import SpanKind, find_spans, masked

logger = logging.getLogger(__name__)

Path = tuple[str | int, ...]
# Names for programs.
_IDENTIFIER = re.compile(
    r"""
    [A-Za-z][\w-]*[_.\d][\w.-]*                             # en_US, menu.open, item-2
  | [a-z]+[A-Z]\w*                                          # camelCase
  | [a-z]{2,3}-[A-Z](?:[A-Z]|[a-z]{3}(?:-[A-Z]{2})?)          # de-DE, zh-Hans, zh-Hans-CN
  | :[A-Za-z_][\w.]+[?!]?                                    # a symbol of Ruby, :car.form.open
  | (?:text|image|audio|video|font|application|multipart|message|model)/[\w.+*-]+   # text/html
  | (?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Etc|Europe|Indian|Pacific)/[\w/+-]+   # Europe/Rome
  | (?:[\w@.-]+/)+[\w.-]*\.\w+                              # app/models/car.rb
  | [0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}     # a UUID
  | --?[A-Za-z][\w-]*(?:[=:]\S*)?                            # an option of a command: --share=network
  | (?=[^/]*/)(?![^\W\d_]+(?:/[^\W\d_]+)+[.!?:]*\Z)[!-;=-~]+   # a path or its pattern, but not "and/or"
  | (?=[^*]*\*)(?!\*+[^*]+\*+[.:]?\Z|[A-Z][a-z]*\*:?\Z)[!-;=-~]+   # *.txt, but not *bold* and "Name*"
  | v?\d+(?:\.\d+)+-\w+                                      # 1.2.3-beta
  | \#?[a-z][a-z0-9_.-]*(?::[a-z0-9_.+-]+)+(?:/[\w./-]+)?     # of a game: minecraft:oak_log, #create:wood/planks
  | \^\S*\$                                                # a pattern: ^(city|local)$
  | true | false | null | ltr | rtl
  | [kcm]m | km/h | m/s | [km]g | m[lL] | [kMGT]B | [kM]bps | [kMG]?Hz | kWh? | mAh | dpi | dB | kcal | kJ | [hk]Pa | rpm   # units
  | \.[A-Za-z]\w*                                           # the ending of files: .png
  | \d+x\d+(?:\s+\d+x\d+)*                                  # sizes of pictures: 48x48
  | \#[0-9A-Fa-f]{3,8}                                      # a colour
  | (?:rgb|hsl|hwb|lab|lch|oklab|oklch)a?\([\d\s.,%/+-]*\)
  | (?:var|url|calc|env)\([^()]*\)
  | [+-]?\d+(?:\.\d+)?(?:px|r?em|ex|ch|v[hw]|vmin|vmax|pt|m?s|fr|deg)
    """,
    re.VERBOSE,
)
# As in <%= root %>/locale/%{locale}.yml.
_PLACEHOLDER_IN_PATH = re.compile(r"<%=[^%<>]*%>|[%$#]?\{[\w. ]+\}")
# No name is longer, and the time of the search grows with the square of the length.
_LONGEST_NAME = 200
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}")
# The values of base_locale, defaultLanguage and languages are names of languages.
_KEY_OF_LANGUAGE = re.compile(r"(?:.*[\W_])?(?:lang|language|locale|hreflang)s?|.*[a-z](?:Lang|Language|Locale)s?")
# The value of distributionPath is a path, wrapper/dists, but that of a label is none: "dir": "Up/Down".
_KEY_OF_PATH = re.compile(
    r"(?:.*[\W_])?(?:path|dir|directory|url|uri|href|src)|.*[a-z](?:Path|Dir|Directory|Ur[il]|Href|Src)"
)
_SMALL_PATH = re.compile(r"[a-z\d]+(?:/[a-z\d]+)+/?")
# The value of id is a name for programs, if it can be one: "id": "settings", but not "id": "Name of the user".
_KEY_OF_NAME = re.compile(r"(?:.*[._-]|(?-i:.*[a-z\d](?=I)))?ids?", re.IGNORECASE)
_NAME = re.compile(r"[a-z][\w.-]*")
_KEY_OF_OWNER = re.compile(r"(?:.*[._-])?(?P<owner>app(?:lication)?|vendor)[._-]?id", re.IGNORECASE)
# The settings of a window: their values are names and keys such as "ctrl pressed Q"; but "icon": "Icon" is a label.
_KEY_OF_SETTING = re.compile(
    r"(?:.*(?:[._-]|[a-z\d](?=[A-Z])))?(?P<last>[Ii]con(?:Name)?|[Rr]esourceName|[Mm]nemonic|[Aa]ccelerator|[Ll]ookAndFeel|class|url)"
)
_SETTING = re.compile(
    r"(?:(?:alt|altGraph|control|ctrl|meta|pressed|released|shift|typed)\s+)*(?:[A-Z][A-Z\d_]*|[a-z\d][\w.-]*)"
)
# Those of EnableLogging and dog.visible are True and False, which are labels elsewhere.
_KEY_OF_SWITCH = re.compile(
    r"(?:.*[._-])?(?i:is|has|should|shows?|uses?|allows?|can|enabled?|disabled?|auto)(?:[A-Z._-].*)?|.*(?i:(?:en|dis)abled|visible|required)"
)
# The value of twitter is the name of an account, if it can be one: "twitter": "babeljs", but not "twitter": "Share on Twitter".
_KEY_OF_ACCOUNT = re.compile(
    r"(?:.*[_-])?(?:bitbucket|bluesky|codepen|facebook|github|gitlab|instagram|keybase|linkedin|mastodon|patreon|reddit|telegram|twitter|youtube)"
    r"(?:[_-]?(?:user(?:name)?|handle|id))?|user_?name",
    re.IGNORECASE,
)
_NAME_WITH_NUMBER = re.compile(r"[a-z\d][\w.-]*")  # also 100-red-houses
# In JSON and YAML so is that of type, if it is one small word: "type": "table", but not "type": "Savings account"; the keys of
# texts of programs are names as well, so "type": "type" is a label. "verse_type" and "itemType" are such keys, too.
_KEY_FOR_PROGRAMS = re.compile(
    r"(?:.*(?:[_-]|(?-i:[a-z\d](?=T)))(?=type\Z))?(?P<last>type|kind|(?:text[-_]?)?align|valign|dir|direction|method|format"
    r"|role|target|rel|charset|encoding|class|slug|icon|layout)",
    re.IGNORECASE,
)
# Of JSON Schema, JSON-LD, GraphQL and databases: whatever their values look like, programs look them up.
_KEY_OF_SCHEMA = re.compile(
    r"\$(?:anchor|binary|class|comment|date|dynamic(?:Anchor|Ref)|extends|id|import|include|key|kind|model|namespace|oid|ref|regex"
    r"|schema|type|uu?id|version|vocabulary)|__typename|_(?:id|key|ref|type)|xsi:type"
)
_KEY_OF_CLASSES = re.compile(r"(?:.*(?:[_-]|(?-i:[a-z\d](?=[IC]))))?(?:icon|class(?:es|[_-]?names?)?)", re.IGNORECASE)

# Formats of dates for programs, such as %Y-%m-%d, DD/MM/YYYY, yyyyMMdd and EEEE: fields between signs, each of one letter.
# Fields stand together only in known orders, since "Add" and "mass" are words.
_DATE_FORMAT = re.compile(
    r"""
    (?=.*%)(?>(?:%[-^_0#]?[A-Za-z]|[\W\d_])+)
  | (?=.*(?:YYYY|yyyy|MM|DD|dd|HH|hh|mm|ss|EEE))
    (?>(?:
        (?:(?:YYYY|yyyy)(?:MM(?:DD|dd)?)? | (?:HH|hh)mm(?:ss)?[AaZz]? | mm(?:ss)?[AaZz]? | ss[AaZz]
          | Y{1,4} | y{1,4} | M{1,4} | D{1,2} | d{1,2} | H{1,2} | h{1,2} | m{1,2} | s{1,2} | E{1,4} | [AaZz]
        )(?![^\W\d_])
      | [\W\d_]
    )+)
    """,
    re.VERBOSE,
)


def is_translated(value: str, path: Path, patterns: Sequence[str]) -> bool:
    """Whether a string is translated: if a pattern chooses it, or if there are no patterns and it is no identifier."""
    if not has_letter(value):
        return False
    if patterns:
        return is_chosen(path, patterns)
    key = next((key for key in reversed(path) if isinstance(key, str)), "")
    if _KEY_OF_SCHEMA.fullmatch(key):
        return False
    for_program = _KEY_FOR_PROGRAMS.fullmatch(key)
    name = _NAME_WITH_NUMBER if key.casefold() == "slug" else _NAME
    if for_program and name.fullmatch(value) and value.casefold() != for_program["last"].casefold():
        return False
    if _KEY_OF_ACCOUNT.fullmatch(key) and _NAME_WITH_NUMBER.fullmatch(value) and value.casefold() != key.casefold():
        return False
    return not (_KEY_OF_CLASSES.fullmatch(key) and _are_classes(value)) and _is_text(value, key)


# Classes without a hyphen that pages have beside others, and families of icons whose names are words: material-icons home
_SMALL_CLASSES = re.compile(
    "active|bold|box|btn|button|card|center|clearfix|col|collapsed?|container|content|current|dark|disabled|dropdown|fade|first|fluid|full|grid"
    "|hidden|highlight|icon|inline|item|large|last|left|light|link|list|main|menu|modal|muted|nav|navbar|open|page|primary|right|row|secondary"
    "|section|selected|show|sidebar|small|text|title|visible|wide|wrapper"
)
_FAMILIES_OF_ICONS = re.compile(r"(?:material-(?:icons|symbols)(?:-[a-z]+)?|bi|fa[bdlrs]?|glyphicon|la[bs]?|mdi|ri|ti)")


def _are_classes(value: str) -> bool:
    """Whether words are classes of CSS, each with a hyphen, a usual name or the beginning of another one: fa fa-car, nav-item active; but not two-door car."""
    words = value.split()
    if not all(map(_NAME.fullmatch, words)):
        return False
    if len(words) == 2 and _FAMILIES_OF_ICONS.fullmatch(words[0]):
        return True
    families = {word.partition("-")[0] for word in words if "-" in word}
    return bool(families) and all(
        "-" in word or families & {word, word[:-1]} or _SMALL_CLASSES.fullmatch(word) for word in words
    )


def _is_text(value: str, key: str) -> bool:
    """Whether a string with letters is no identifier."""
    if len(value) > _LONGEST_NAME:
        return True
    if key.casefold() == "code" and _LANGUAGE_TAG.fullmatch(value) and len(value) < 6:
        return False
    if _LANGUAGE_CODE.fullmatch(value) and any(map(_KEY_OF_LANGUAGE.fullmatch, (key, key.lower()))):
        return False
    if _DATE_FORMAT.fullmatch(value) or (_KEY_OF_NAME.fullmatch(key) and _NAME_WITH_NUMBER.fullmatch(value)):
        return False
    if value.casefold() in ("true", "false") and _KEY_OF_SWITCH.fullmatch(key):
        return False
    if (setting := _KEY_OF_SETTING.fullmatch(key)) and _SETTING.fullmatch(value):
        return value.casefold() == setting["last"].casefold()
    if (name_of := _KEY_OF_OWNER.fullmatch(key)) and re.fullmatch(r"\w[\w.-]*", value):
        return value.casefold().startswith(name_of["owner"].casefold())
    if _KEY_OF_PATH.fullmatch(key) and _SMALL_PATH.fullmatch(value):
        return False
    # A placeholder in a path is a part of it, as in %{folder}/en.yml, but {price}/month is text.
    name = _PLACEHOLDER_IN_PATH.sub("x", value) if "/" in value else value
    return not _IDENTIFIER.fullmatch(name) or value.endswith(".")


def holds_text(segment: Segment, key: str) -> bool:
    """Whether the segment of a string with this key holds a text for people and no identifier; the branches of a message are texts."""
    has_branches = any(isinstance(piece, Markup) and piece.inner for piece in segment.pieces)
    text = plain_text(segment.pieces)
    return has_branches or (has_letter(text) and _is_text(text, key))


def language_in_place_of(key: str, languages: Direction) -> str | None:
    """The target language, if the only key of a file, with all texts below it, is the source language, as in the files of Rails."""
    is_source = primary_language(key) == primary_language(languages.source)
    return languages.target if is_source and _LANGUAGE_TAG.fullmatch(key) else None


def is_metadata(path: Path) -> bool:
    """Whether a key says that its value is no text: in JSON, @key of Flutter's ARB files describes a message, and @type is of JSON-LD."""
    return any(isinstance(key, str) and key.startswith("@") for key in path)


def require_chosen(patterns: Sequence[str], *, has_values: bool) -> None:
    """Raise DataError if the user names values, and the file has none of them."""
    if patterns and not has_values:
        raise DataError(
            f"no text has the keys that --values names: {', '.join(patterns)}",
            hint="such as --values title --values 'items.*.title'; leave it out to translate all texts",
        )


def is_chosen(path: Path, patterns: Sequence[str]) -> bool:
    """Whether a value is translated.

    Args:
        path: the keys and places that lead to it.
        patterns: keys with points between them. `*` in a key is any text, a key `*` also any place in a list, and
            `**` any number of keys.
    """
    parts = tuple(map(str, path))
    return any(_fits(parts, tuple(pattern.split("."))) for pattern in patterns)


def _fits(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    # For each number of keys, whether the pattern so far fits them.
    fits = [True] + [False] * len(path)
    for part in pattern:
        if part == "**":
            for number in range(1, len(fits)):
                fits[number] = fits[number] or fits[number - 1]
        else:
            fits = [False] + [fits[number] and fnmatchcase(key, part) for number, key in enumerate(path)]
    return fits[-1]


WITH_FORM_OF_MILLIONS = frozenset(["ca", "es", "fr", "it", "lld", "pt", "scn", "vec"])
"""The languages to which the Unicode CLDR gives a form `many` for whole millions, which the texts of programs seldom have."""


class PluralsToComplete:
    """Collects the plurals that lack forms of the target language, and names them in one warning."""

    def __init__(self, language: str | None) -> None:
        """
        Args:
            language: of the translation; None: it is not known, and nothing is named.
        """
        self._needed = frozenset() if language is None else _plural_forms(language)
        self._language = language
        self._places: list[str] = []

    def add(self, forms: Collection[str], place: str) -> None:
        """Look at a plural with these forms, such as one and other."""
        if not self._needed <= frozenset(forms):
            self._places.append(place)

    def warn(self) -> None:
        """Name what was found, in one line."""
        if self._places:
            logger.warning(
                "%s: %d plural(s) lack forms of the language %s, which has %s: apps take the form other in their place, so add them",
                self._places[0],
                len(self._places),
                self._language,
                ", ".join(sorted(self._needed)),
            )


def _plural_forms(language: str) -> frozenset[str]:
    """The names of the forms that a plural has in a language; none if they are not known."""
    from babel import Locale, UnknownLocaleError

    try:
        tags = Locale.parse(primary_language(language)).plural_form.tags
    except (UnknownLocaleError, ValueError):
        return frozenset()
    form_of_millions = {"many"} if primary_language(language) in WITH_FORM_OF_MILLIONS else set()
    return frozenset(tags) - form_of_millions | {"other"}


_BRANCHING = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal|choice)\s*,")
_HEAD = re.compile(r"\{\s*[\w.-]+\s*(?:,\s*(?P<kind>\w+)\s*(?P<comma>,)?)?")
_SELECTOR = re.compile(r"\s*+(?:offset:\d++\s*+)?(?:=\d++|[\w-]++)\s*+\{")
# Of a choice of Java: 0#no files|1#one file|1<{0} files
_LIMIT = re.compile(r"\s*+-?+(?:\d++(?:\.\d++)?|\u221e)\s*+[#<\u2264]")
_QUOTED = re.compile(r"'[{}#|](?:[^']|'')*'")
_MAX_DEPTH = 20


@dataclass(slots=True)
class IcuText:
    """A message, or a branch of one: value[start:end]."""

    start: int
    end: int
    is_plural: bool
    """Whether # is a number in it."""
    words: list[tuple[int, int]] = field(default_factory=list)
    """Its arguments and quoted parts, in order."""


def is_icu_message(value: str) -> bool:
    """Whether a string has branches, such as those of a plural."""
    return _BRANCHING.search(value) is not None


def icu_texts(value: str) -> list[IcuText]:
    """The message and all branches in it; none if its braces do not fit together."""
    try:
        found = list(_texts(value, 0, len(value), is_plural=False, depth=0))
    except ValueError:
        return []
    return found


def with_icu_branches(
    pieces: Sequence[Piece],
    place: str,
    escape: Callable[[str], str] = str,
    *,
    doubles: bool = False,
    quotes: bool = True,
) -> tuple[Piece, ...]:
    """The pieces of a message as one word, whose texts are the message and its branches; the pieces as they are if it has none.

    Args:
        pieces: text, perhaps with markup in it.
        place: of the segment.
        escape: how text stands in the file.
        doubles: whether each apostrophe of a text is written twice, as java.text.MessageFormat needs it; else only those
            before a brace.
        quotes: whether an apostrophe before a brace is a quotation mark, and two of them are one apostrophe.
    """
    text = plain_text(pieces)
    if not is_icu_message(text) or _SIGNS.search(text) or has_too_much_markup(pieces):
        return tuple(pieces)
    # A sign of a private area stands for each markup.
    signs = {chr(_FIRST_SIGN + number): piece for number, piece in enumerate(pieces) if isinstance(piece, Markup)}
    numbers = {piece: sign for sign, piece in signs.items()}
    message = "".join(piece if isinstance(piece, str) else numbers[piece] for piece in pieces)

    def finished(text: str) -> str:
        return "".join(signs[part].raw if part in signs else escape(part) for part in _SIGNS.split(text))

    texts = icu_texts(message)
    slots = []
    for each in texts:
        # MessageFormat reads the text that a choice has chosen once more if it has a brace.
        is_read_twice = doubles and each.start > 0 and "{" in message[each.start : each.end]
        apostrophe = "'" * 4 if is_read_twice else "''"
        segment = _icu_segment(message, each, place, signs, apostrophe if quotes else "")
        render = partial(_with_apostrophes, apostrophe) if doubles else _rendered_icu if quotes else string_of
        if segment is not None:
            slots.append(Slot(each.start, each.end, segment, render))
    document = SplicedDocument(DecodedText(message), tuple(slots))
    has_inner = any(sign.inner is not None for sign in signs.values())
    fault = CODES_OF_MESSAGE if texts and has_inner else "" if texts else BROKEN_MESSAGE
    inner = InnerText(document, finished, fault)
    return (Markup(Role.WORD, 0, finished(message), inner=inner),)


_APOSTROPHE_BEFORE_BRACE = re.compile(r"(?<!')'(?=\{(?!\{))")
_TWO_AT_BRACE = re.compile(r"''\{|\}''")


def reads_apostrophes_as_quotes(values: Collection[str], *, is_flutter: bool = False) -> bool:
    """Whether the program that reads these strings takes an apostrophe before a brace for a quotation mark, as ICU does.

    It does so if some of them have branches, or two apostrophes beside a brace, and none has a lone apostrophe before a brace
    that no other one closes.

    Args:
        is_flutter: they are a file of Flutter, whose messages have branches, but quote nothing unless a setting says so.
    """
    if any(_APOSTROPHE_BEFORE_BRACE.search(value) and not _QUOTED.search(value) for value in values):
        return False
    has_branches = not is_flutter and any(map(is_icu_message, values))
    return has_branches or any(map(_TWO_AT_BRACE.search, values))


def with_apostrophes_of(source: str, text: str) -> str:
    """A translation of a message of ICU without branches, in which an apostrophe before an argument is written twice: else the argument would be text.

    A message that quotes a brace itself stays as it is.
    """
    if is_icu_message(source) or _APOSTROPHE_BEFORE_BRACE.search(source):
        return text
    return _APOSTROPHE_BEFORE_BRACE.sub("''", text)


BROKEN_MESSAGE = "the braces of a message of ICU do not fit together, so its texts were left as they are"
CODES_OF_MESSAGE = "texts inside the codes of a message of ICU were left as they are"
_FIRST_SIGN = 0xF0000
_SIGNS = re.compile("([\U000f0000-\U000ffffd])")


def _icu_segment(
    message: str, text: IcuText, place: str, signs: Mapping[str, Markup], apostrophe: str
) -> Segment | None:
    """The segment of a message or branch; None if it has no words of its own.

    Args:
        apostrophe: how one is written in it; two of them are one, too. Empty: as it is.
    """

    def shown(start: int, end: int) -> str:
        written = message[start:end]
        return written.replace(apostrophe, "'").replace("''", "'") if apostrophe else written

    pieces: list[Piece] = []
    at = text.start
    for start, end in [*text.words, (text.end, text.end)]:
        for match in _SIGNS.finditer(message, at, start):
            pieces += [shown(at, match.start())]
            sign = signs[match[0]]
            pieces += [sign._replace(number=match.start(), raw=match[0], inner=None)]
            at = match.end()
        pieces.append(shown(at, start))
        if end > start:
            pieces.append(Markup(Role.WORD, start, message[start:end], start))
        at = end
    kept = tuple(piece for piece in pieces if piece)
    return Segment(kept, place, True, has_references=True) if has_letter(plain_text(kept)) else None


def _with_apostrophes(apostrophe: str, found: TranslatedSegment) -> str:
    """The text of a branch in which each apostrophe is written like this one."""
    return rendered(found.pieces, lambda text: text.replace("'", apostrophe))


def _rendered_icu(found: TranslatedSegment) -> str:
    """The text of a branch: an apostrophe before a brace would quote it, so it is doubled."""
    result = ""
    for piece in reversed(found.pieces):
        raw = piece if isinstance(piece, str) else piece.raw
        if isinstance(piece, str):
            raw = re.sub(r"'(?=[{}#|])", "''", raw)
            if raw.endswith("'") and result[:1] in ("{", "}", "#", "|"):
                raw += "'"
        result = raw + result
    return result


def _texts(value: str, start: int, end: int, *, is_plural: bool, depth: int) -> Iterator[IcuText]:
    """The text value[start:end] and those inside it."""
    if depth > _MAX_DEPTH:
        raise ValueError("too deep")
    text = IcuText(start, end, is_plural)
    inner: list[tuple[int, int, bool]] = []
    at = start
    while at < end:
        quoted = _QUOTED.match(value, at, end)
        if quoted:
            text.words.append(quoted.span())
            at = quoted.end()
        elif value[at] == "{":
            stop = _end_of_argument(value, at, end, is_plural, inner)
            text.words.append((at, stop))
            at = stop
        elif value[at] == "}":
            raise ValueError("a brace closes nothing")
        else:
            if value[at] == "#" and is_plural and value[at - 1] != "&":  # no &#39;
                text.words.append((at, at + 1))
            at += 1
    yield text
    for first, last, has_number in inner:
        yield from _texts(value, first, last, is_plural=has_number, depth=depth + 1)


def _end_of_argument(value: str, start: int, end: int, is_plural: bool, inner: list[tuple[int, int, bool]]) -> int:
    """Where an argument ends; its branches are added to `inner`."""
    head = _HEAD.match(value, start, end)
    if head is None:
        raise ValueError("no name")
    at = head.end()
    kind = head["kind"]
    if kind in ("plural", "select", "selectordinal") and head["comma"]:
        while selector := _SELECTOR.match(value, at, end):
            stop = _closing(value, selector.end(), end)
            inner.append((selector.end(), stop, is_plural or kind != "select"))
            at = stop + 1
        rest = re.compile(r"\s*\}").match(value, at, end)
        if rest is None:
            raise ValueError("no end of the argument")
        return rest.end()
    if kind == "choice" and head["comma"]:
        while limit := _LIMIT.match(value, at, end):
            stop = _closing(value, limit.end(), end, "|")
            inner.append((limit.end(), stop, is_plural))
            at = stop + 1
            if value[stop] == "}":
                return at
        raise ValueError("no limit")
    return _closing(value, at, end) + 1


def _closing(value: str, start: int, end: int, divider: str = "") -> int:
    """Where the brace stands that closes the one before `start`, or a divider that no other brace encloses."""
    depth, at = 1, start
    while at < end:
        quoted = _QUOTED.match(value, at, end)
        if quoted:
            at = quoted.end()
            continue
        depth += (value[at] == "{") - (value[at] == "}")
        if not depth or (depth == 1 and value[at] == divider):
            return at
        at += 1
    raise ValueError("a brace is never closed")


# Words of MediaWiki with a form for each number or gender: {{PLURAL:$1|file|files|0=no files}}, or an ending for each:
# file{{PLURAL:$1||s}}.
_FORMS = re.compile(
    r"(?:(?<![\w$%&@#\\{])(?P<before>[^\W\d_]+)|(?<!\w))"
    r"(?P<name>\{\{(?:PLURAL|GENDER):[^{}|]*)(?P<forms>\|[^{}\[\]]*)\}\}(?P<after>[^\W\d_]*)(?!\w)"
)
_FORM = re.compile(r"\|(?P<number>(?:\d++=)?)(?P<words>[^|]*)")


def tagged_segment(text: str, place: str, *, keeps_spaces: bool = True, quotes: bool = True) -> Segment:
    """The segment of a string. If its inline tags do not fit together, they are text that stays, as a placeholder.

    Args:
        quotes: of `with_icu_branches`.
    """
    if is_icu_message(text):
        return Segment(with_icu_branches([text], place, quotes=quotes), place, keeps_spaces)
    if "<" in text and (file := file_in_string(text, partial(_slot_in_file, place))) is not None:
        return Segment((file,), place, keeps_spaces)
    segment = replace(_tagged_segment(text, place, keeps_spaces=keeps_spaces), has_references=True)
    if "{{PLURAL:" not in text and "{{GENDER:" not in text:
        return segment
    return with_placeholders(segment, _FORMS, partial(_forms, place))


def segment_in_xml(pieces: Sequence[Piece], place: str, *, keeps_spaces: bool = False) -> Segment:
    """The segment of the content of an element, which a program shows as a string; without elements in it, tags may be written as text: &lt;b&gt;."""
    if any(isinstance(piece, Markup) for piece in pieces):
        found = with_icu_branches(pieces, place, escaped_xml)
        return Segment(found, place, keeps_spaces=keeps_spaces, is_label=True, has_references=True)
    segment = tagged_segment(plain_text(pieces), place, keeps_spaces=keeps_spaces)
    return replace(
        segment, pieces=tuple(piece if isinstance(piece, str) else _in_xml(piece) for piece in segment.pieces)
    )


def _in_xml(tag: Markup) -> Markup:
    inner = tag.inner
    if inner is not None:
        finish = inner.finish
        inner = replace(inner, finish=lambda text: escaped_xml(finish(text)))
    return tag._replace(raw=escaped_xml(tag.raw), inner=inner)


def _slot_in_file(place: str, xml: XmlText, element: Element) -> Slot | None:
    is_text = is_translated(xml.whole_text(element).strip(), (element.local,), ())
    return slot_of_element(xml, element, place, element.local) if is_text else None


def _forms(place: str, raw: str) -> InnerText:
    """The forms of a word of MediaWiki, each a text of its own; an ending with the rest of its word, which it is written with."""
    found = _FORMS.fullmatch(raw)
    assert found is not None
    whole = rf"|\g<number>{found['before'] or ''}\g<words>{found['after']}"
    text = f"{found['name']}{_FORM.sub(whole, found['forms'])}}}}}"
    slots = [
        Slot(*form.span("words"), replace(Segment.plain(form["words"], place), has_references=True), string_of)
        for form in _FORM.finditer(text, text.index("|"), len(text) - 2)
        if has_letter(form["words"])
    ]
    document = SplicedDocument(DecodedText(text), tuple(slots))
    return InnerText(document, lambda written: raw if written == text else written)


def _tagged_segment(text: str, place: str, *, keeps_spaces: bool) -> Segment:
    plain = replace(Segment.plain(text, place, keeps_spaces=keeps_spaces), is_label=True)
    if DIVISION in text or ("<" not in text and not _MARKDOWN.search(text)):
        return plain
    tagged = chain.from_iterable(map(_with_numbered_tags, _parts(text)))
    parts = list(chain.from_iterable(map(_with_markdown, tagged)))
    if len(parts) < 2:
        return plain
    return Segment(tuple(merged([part.piece for part in nested(parts)])), place, keeps_spaces)


def with_placeholders(
    segment: Segment,
    pattern: re.Pattern[str] = TOUCHING_SPECIFICATION,
    inner: Callable[[str], InnerText | None] = lambda raw: None,
) -> Segment:
    """A segment in which each part that fits a pattern is a placeholder; else each specification of printf that touches a word, such as that of %sdog.

    All other specifications are protected spans without that. Without the word of a programmer nobody can tell a
    specification from a per cent sign here, as in 50 %discount.

    Args:
        inner: the texts inside such a part.
    """
    found: list[Piece] = []
    # The numbers of tags are places in the text.
    numbers = count(1 + sum(len(rendered([piece], str)) for piece in segment.pieces))
    for piece in segment.pieces:
        if not isinstance(piece, str):
            found.append(piece)
            continue
        place = 0
        for match in pattern.finditer(piece):
            word = Markup(Role.WORD, next(numbers), match[0], inner=inner(match[0]))
            found += [piece[place : match.start()], word]
            place = match.end()
        found.append(piece[place:])
    return replace(segment, pieces=tuple(piece for piece in found if piece))


def slot_of_element(
    xml: XmlText,
    element: Element,
    place: str,
    key: str,
    read: Callable[[str, str], Segment] | None = None,
) -> Slot | None:
    """The text of an element of XML that holds a string; None if it holds none for people, or has elements in it.

    Args:
        place: of the segment.
        key: of the string.
        read: makes the segment of a text and its place; None: `tagged_segment`.
    """
    kinds = {None if isinstance(child, Element) else child.kind for child in element.children}
    if len(kinds) != 1 or not kinds <= {XmlKind.TEXT, XmlKind.CDATA}:
        return None
    is_cdata = XmlKind.CDATA in kinds
    if is_cdata and len(element.children) > 1:
        return None
    segment = (read or tagged_segment)(xml.whole_text(element), place)
    if not holds_text(segment, key):
        return None

    def written(found: TranslatedSegment) -> str:
        text = string_of(found)
        if is_cdata:
            return f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"
        return escaped_xml(text)

    return Slot(element.inner_start, element.inner_end, segment, written)


_WITHOUT_TEXT = frozenset(["script", "style"])


def _parts(text: str) -> Iterator[InlinePart]:
    """Text and tags in order; between the texts of two blocks stands a line end that the string does not have."""
    has_text = False
    end_of_link = end_of_kept = -1
    tokens = list(html_tokens(text))
    ends = ends_of_elements(tokens, is_page=False)
    with_partner = {*ends, *(end - 1 for end in ends.values())}
    for index, token in enumerate(tokens):
        if token.start < end_of_kept:
            continue
        raw = text[token.start : token.end] or IMPLIED_END
        if (index in ends and token.name in _WITHOUT_TEXT) or raw.startswith("<!--"):
            end_of_kept = tokens[ends.get(index, index + 1) - 1].end
            yield InlinePart(Markup(Role.POINT, token.start, text[token.start : end_of_kept]), token.start, end_of_kept)
            continue
        if index in ends and (token.name in CODE or is_kept_tag(raw)):
            end_of_kept = tokens[ends[index] - 1].end
            raw = text[token.start : end_of_kept]
            if token.name not in BLOCKS:
                has_text = True
                yield InlinePart(Markup(Role.WORD, token.start, raw), token.start, end_of_kept)
                continue
        if token.name == "a" and token.kind is TokenKind.START and token.start == end_of_link:
            yield InlinePart(DIVISION, token.start, token.start)  # the links of a menu
        if token.name == "a" and token.kind is TokenKind.END:
            end_of_link = token.end
        is_tag = token.kind in (TokenKind.START, TokenKind.END)
        role = Role.OPEN if token.kind is TokenKind.START else Role.CLOSE
        if is_inline_element(token.name) or (index in with_partner and token.name not in BLOCKS):
            yield InlinePart(Markup(role, token.start, raw), token.start, token.end, token.name)
            continue
        if not is_tag or token.name not in BLOCKS:
            has_text = True  # also white space: what stands behind it belongs to the next block
            yield InlinePart(raw, token.start, token.end)
            continue
        division = InlinePart(DIVISION if has_text else "", token.start, token.start)
        tag = InlinePart(Markup(Role.POINT, token.start, raw), token.start, token.start + len(raw))
        yield from (division, tag) if role is Role.OPEN and token.name != "br" else (tag, division)
        has_text = False


# As the strings of react-i18next have them: <1>here</1>, <0/>.
_NUMBERED_TAG = re.compile(r"<(?P<slash>/?)(?P<number>\d{1,3})[ ]?(?P<empty>/?)>")


def _with_numbered_tags(part: InlinePart) -> Iterator[InlinePart]:
    """A part of a string; in text, tags whose names are numbers are tags."""
    if not isinstance(part.piece, str):
        yield part
        return
    place = 0
    for match in _NUMBERED_TAG.finditer(part.piece):
        start, end = match.span()
        yield InlinePart(part.piece[place:start], part.start + place, part.start + start)
        role = Role.CLOSE if match["slash"] else Role.POINT if match["empty"] else Role.OPEN
        markup = Markup(role, part.start + start, match[0])
        yield InlinePart(markup, part.start + start, part.start + end, f"<{match['number']}>")
        place = end
    yield InlinePart(part.piece[place:], part.start + place, part.end)


# A link or picture, and emphasis that no word touches, as the strings of web sites have them: [here](url), **big**, *big*, ~~old~~.
_EMPHASIS = (
    rf"(?<![^\W_])(?<![\\{sign}])(?P<{kind}>{marks})(?=[^\s{sign}])(?P<text_of_{kind}>[^\n]{{1,300}}?)(?<=[^\s\\{sign}])(?P={kind})(?![^\W_]|{re.escape(sign)})"
    for kind, sign, marks in (("stars", "*", r"\*{1,3}"), ("lines", "_", "_{1,3}"), ("waves", "~", "~~"))
)
# Of MediaWiki and DokuWiki: [[$2|page]], [[Special:Search|search]], [[doku>wiki|wiki]]; [[price|currency]] is a value of a template.
_LINK_OF_WIKI = re.compile(
    r"\[\[(?=[^\[\]|\n]*(?:\$\d|[:>]))[^\s\[\]|][^\[\]|\n]{0,300}\|(?P<label_of_wiki>[^\s\[\]|][^\[\]|\n]{0,300})\]\]"
)
_MARKDOWN = re.compile(
    "|".join(
        (
            r"!?\[(?P<label>[^\[\]\n]{1,300})\](?P<target>\([^()\s]{0,2000}(?:\s\"[^\"\n]{0,300}\")?\))",
            _LINK_OF_WIKI.pattern,
            *_EMPHASIS,
        )
    )
)


def _with_markdown(part: InlinePart) -> Iterator[InlinePart]:
    """A part of a string; in text, links and emphasis of Markdown are ranges."""
    if not isinstance(part.piece, str):
        yield part
        return
    # The signs of emphasis are spans for the texts of which nobody knows that they are Markdown.
    spans = [
        span
        for span in find_spans(part.piece)
        if span.kind is not SpanKind.MARK and not _LINK_OF_WIKI.fullmatch(part.piece, span.start, span.end)
    ]
    visible = masked(part.piece, spans, "x")
    yield from _markdown_parts(part.piece, visible, part.start, 0, len(visible))


def _markdown_parts(text: str, visible: str, offset: int, start: int, end: int) -> Iterator[InlinePart]:
    place = start
    for match in _MARKDOWN.finditer(visible, start, end):
        kind = next((kind for kind in ("stars", "lines", "waves") if match[kind]), None)
        label = "label" if match["label"] else "label_of_wiki"
        first, last = match.span(label if kind is None else f"text_of_{kind}")
        name = "[" if kind is None else match[kind]
        without_words = WithoutWords.LEFT_OUT
        if kind is None:  # a picture without words is one
            is_picture = match[0].startswith("!")
            without_words = WithoutWords.EMPTY if is_picture else WithoutWords.AT_NEAREST
        yield InlinePart(text[place : match.start()], offset + place, offset + match.start())
        for role, begin, stop in (
            (Role.OPEN, match.start(), first),
            (Role.CLOSE, last, match.end()),
        ):
            if role is Role.CLOSE:
                yield from _markdown_parts(text, visible, offset, first, last)
            raw = text[begin:stop]
            markup = Markup(role, offset + begin, raw, without_words=without_words)
            yield InlinePart(markup, offset + begin, offset + stop, name)
        place = match.end()
    yield InlinePart(text[place:end], offset + place, offset + end)


def string_of(translation: TranslatedSegment) -> str:
    """The string of a translation."""
    text = rendered(translation.pieces, str)
    return text.replace(DIVISION, "") if "<" in text else text
