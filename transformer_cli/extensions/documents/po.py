"""PO files of gettext: messages without a translation get one; comments, references and other translations stay."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from unicodedata import east_asian_width

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.character_encoding import DecodedText, decoded
from transformer_cli.extensions.documents.formats import DEFAULTS, ReadingOptions, ReadingWatch
from transformer_cli.extensions.documents.repeated_keys import RepeatedKeys
from transformer_cli.extensions.documents.segments import (
    Change,
    Segment,
    TranslatedSegment,
    spliced,
    with_values_around_words,
)
from transformer_cli.extensions.documents.strings import (
    WITH_FORM_OF_MILLIONS,
    string_of,
    tagged_segment,
)
from transformer_cli.process.errors import DataError
from transformer_cli.text.languages import primary_language
from transformer_cli.text.normalization import has_letter
from transformer_cli.text.span_kinds import SPECIFICATION_AT_WORD

logger = logging.getLogger(__name__)

_CHARSET = re.compile(rb"charset=([A-Za-z0-9_.:-]+)")
_RULE = re.compile(r"nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;\n]+)")
# A header has a field in each line, or all of them in one string.
_LANGUAGE = re.compile(r'(?:"|\\n)Language: *+([^\\"\n]*)\\n')
# Of fr, fr_CA and fr@euro; LL is to be filled in.
_LANGUAGE_CODE = re.compile(r"(?!LL)[A-Za-z]{2,3}(?=[-_@.]|\s*\Z)")
# As in a template that xgettext has written.
_PLURALS_TO_FILL_IN = re.compile(r'(?:"|\\n)Plural-Forms: *(nplurals=INTEGER; *plural=EXPRESSION;)\\n')
# The value may go on in other lines of the file.
_PLURALS = re.compile(r'(?:"|\\n)Plural-Forms:[ ]*((?>(?:[^"\\]++|"[ \t]*\r?\n[ \t]*")*))(?=\\n|"\s*\Z)')
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
# The first string of a field may stand on the next line.
_FIELD = re.compile(r'[ \t]*(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)(?=[ \t"]|\Z)')
_STRINGS = re.compile(r'[ \t]*(".*")[ \t]*\Z')
_ONE_STRING = r'"(?>(?:[^"\\]++|\\.)*)"'
_SEVERAL_STRINGS = re.compile(rf"{_ONE_STRING}(?:[ \t]*{_ONE_STRING})+")
_WIDTH = 79
"""The columns of a line of gettext, with its quotation marks."""
# No language has more, and a rule with thousands would fill a file with empty lines.
_MOST_FORMS = 10
# Catalogues of gettext have no form for whole millions.
_TWO_FORMS = "nplurals=2; plural=(n != 1);"
_TWO_FORMS_WITH_ZERO = "nplurals=2; plural=(n > 1);"
_CUSTOMARY_RULES = {
    **dict.fromkeys(WITH_FORM_OF_MILLIONS, _TWO_FORMS),
    **dict.fromkeys(["fr", "pt-br"], _TWO_FORMS_WITH_ZERO),
}


@dataclass(slots=True)
class _Field:
    """A field of a message, such as msgid."""

    start: int
    """Where its first string begins in the file."""
    end: int
    strings: list[str]
    """The text of each of its lines."""

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.strings)


@dataclass(slots=True)
class _Message:
    line: int
    start: int
    """Where its first field begins in the file."""
    fields: dict[str, _Field] = field(default_factory=dict)
    flags: tuple[int, int] | None = None
    """Where the line of its flags stands, without its line end."""

    @property
    def forms(self) -> dict[int, _Field]:
        """The translations of a plural, by their numbers, in the order of the file."""
        names = {name: re.fullmatch(r"msgstr\[(\d+)\]", name) for name in self.fields}
        return {int(found[1]): self.fields[name] for name, found in names.items() if found}

    def missing_forms(self, num_forms: int | None) -> list[int]:
        """The numbers of the translations of a plural that are empty, or that are not there.

        Args:
            num_forms: how many there should be; None: those that are there.
        """
        forms = self.forms
        numbers = list(forms) if num_forms is None else range(num_forms)
        return [form for form in numbers if form not in forms or not forms[form].text]

    def flags_in(self, text: str) -> list[str]:
        """Its flags, such as c-format."""
        return re.split(r"[#,\s]+", text[slice(*self.flags)]) if self.flags else []

    def has_specifications(self, text: str) -> bool:
        """Whether a flag such as c-format says that %s is a placeholder, also directly before a letter."""
        return any(
            flag.endswith("-format") and not flag.startswith("no-") and "brace" not in flag
            for flag in self.flags_in(text)
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    """Which form of a plural belongs to a number."""

    num_forms: int | None
    """None: it is not known, and each message has as many as the file gives it."""
    singular_form: int = 0
    """The form of n = 1."""

    def is_singular(self, form: int) -> bool:
        """Whether a form stands for one thing; the only form of a language stands for any number."""
        return form == self.singular_form and self.num_forms != 1


@dataclass(frozen=True, slots=True)
class _Slot:
    """A text without a translation: of a message, or of its plural."""

    message: _Message
    is_singular: bool
    segment: Segment


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A `Document` of messages; a translation that a person should look at is marked as fuzzy."""

    content: DecodedText
    slots: tuple[_Slot, ...]
    header: tuple[int, int]
    """Where the text of the header begins and ends."""
    rule: _Rule
    """After the translation."""
    new_rule: str | None = None
    """The value of Plural-Forms that the header gets; None: its own one stays, or is to be filled in."""

    @property
    def segments(self) -> Sequence[Segment]:
        """See `Document.segments`."""
        return [slot.segment for slot in self.slots]

    def require_languages(self, languages: Direction) -> None:
        """See `NamesLanguages.require_languages`. A header without a code of a language names none."""
        named = _LANGUAGE.search(self.content.text, *self.header)
        code = _LANGUAGE_CODE.match(named[1]) if named is not None else None
        if code is None or not self.slots:
            return
        if primary_language(code[0]) not in map(primary_language, languages):
            assert named is not None
            raise DataError(
                f'the header has "Language: {named[1].strip()}", but the model translates from {languages.source} into {languages.target}',
                hint="use a model of these languages (--run), or correct the header",
            )

    def write(self, translations: Sequence[TranslatedSegment], languages: Direction) -> bytes:
        """See `Document.write`. A message whose translation is equal to it stays without one, as gettext allows."""
        text = self.content.text
        line_end = "\r\n" if "\r\n" in text else "\n"
        place = _PLURALS_TO_FILL_IN.search(text, *self.header)
        rule = plural_rule(languages.target) if place else None
        forms = self.rule if rule is None else _read_rule(rule)
        found: dict[int, tuple[_Message, dict[bool, TranslatedSegment]]] = {}
        changed = set()
        for slot, translation in zip(self.slots, translations, strict=True):
            message = slot.message
            found.setdefault(message.start, (message, {}))[1][slot.is_singular] = translation
            if translation.pieces != slot.segment.pieces:
                changed.add(message.start)
        changes = []
        reordered: list[int] = []
        for start in sorted(changed):
            message, texts = found[start]
            used, message_changes = _filled(message, texts, forms, text, line_end)
            changes += message_changes
            is_extended = self.new_rule is not None and any(form.text for form in message.forms.values())
            is_reordered = message.has_specifications(text) and _changes_order(message, texts)
            reordered += [message.line] * is_reordered
            if is_extended or is_reordered or any(translation.doubts for translation in used):
                changes.append(_marked_as_fuzzy(message, text, line_end))
        _warn_of_order(reordered)
        language = _LANGUAGE.search(text, *self.header)
        source, target = map(primary_language, languages)
        named = primary_language(language[1].strip()) if language is not None else None
        is_ours = named == source or (named == "" and bool(changes))
        if changes and self.new_rule is not None:
            changes.append(self._with_rule(self.new_rule, line_end))
        elif changes and place:
            if rule is None:
                logger.warning(
                    "the header has no rule for plurals, and none is known for %s; fill in Plural-Forms",
                    languages.target,
                )
            else:
                changes.append(Change(*place.span(1), rule))
        if language is not None and is_ours and source != target:
            changes.append(Change(*language.span(1), languages.target))
        return self.content.encoded(spliced(text, changes))

    def _with_rule(self, rule: str, line_end: str) -> Change:
        """The change that gives the header a rule for plurals."""
        first = "Plural-Forms: "
        wrapped = f'"{line_end}"'.join(_wrapped(first + rule))
        found = _PLURALS.search(self.content.text, *self.header)
        if found is not None:
            return Change(*found.span(1), wrapped.removeprefix(first))
        end = self.header[1] - len('"')
        is_complete = self.content.text.endswith(("\\n", '"'), *self.header[:1], end)
        return Change(end, end, f'{"" if is_complete else chr(92) + "n"}"{line_end}"{wrapped}\\n')


def read_po(data: bytes, options: ReadingOptions = DEFAULTS) -> Catalogue:
    """A message catalogue, .po or .pot."""
    charset = _CHARSET.search(data)
    content = decoded(data, charset and charset[1].decode("ascii"), given=options.encoding)
    messages = list(_messages(content.text, options.watch))
    header = next((each for each in messages if each.fields["msgid"].text == ""), None)
    header_field = header.fields["msgstr"] if header else None
    new_rule = _new_rule(header_field.text if header_field else "", messages, options)
    rule = _read_rule(new_rule or (header_field.text if header_field else ""))
    # The header of a template does not tell which forms its translation has.
    is_template = bool(header_field and "nplurals=INTEGER" in header_field.text)
    slots = []
    keys = RepeatedKeys()
    for message in messages:
        singular = message.fields["msgid"].text
        context = message.fields.get("msgctxt")
        keys.add(singular, message.start, beside=context and context.text)
        plural = message.fields.get("msgid_plural")
        if plural is None:
            is_open = not message.fields["msgstr"].text if "msgstr" in message.fields else False
            sources = {True: singular} if is_open else {}
        else:
            missing = message.missing_forms(rule.num_forms)
            kinds = {rule.is_singular(form) for form in missing}
            if is_template and missing:
                kinds = {True, False}
            texts = {True: singular, False: plural.text}
            sources = {kind: texts[kind] for kind in (True, False) if kind in kinds}
        for is_singular, source in sources.items():
            if has_letter(source):
                segment = tagged_segment(source, f"line {message.line}")
                if message.has_specifications(content.text):
                    pieces = with_values_around_words(segment.pieces, _values_at_words)
                    segment = replace(segment, pieces=pieces)
                slots.append(_Slot(message, is_singular, options.watch.counted(segment)))
    keys.warn(content.text, options)
    where = (header_field.start, header_field.end) if header_field else (0, 0)
    return Catalogue(content, tuple(slots), where, rule, new_rule)


def _new_rule(header: str, messages: Sequence[_Message], options: ReadingOptions) -> str | None:
    """The rule of the target language where the header has none or that of the source language; None if its own one stays.

    A rule of the target language with another number of forms is the choice of a person, and so is one with as many forms in a
    header that names the target language.
    """
    plurals = [each for each in messages if "msgid_plural" in each.fields]
    if options.target_language is None or not plurals or not header:
        return None
    target = plural_rule(options.target_language)
    found = _RULE.search(header)
    if target is None or "nplurals=INTEGER" in header:
        return None
    if found is None and "Plural-Forms:" in header:
        return None  # not readable; `msgfmt --check` names it
    # Without a rule, gettext takes that of English and German.
    own = found[0] if found else _TWO_FORMS
    source_rule = plural_rule(options.language) if options.language else _TWO_FORMS
    if _values(own) == _values(target) or _values(own) != _values(source_rule or _TWO_FORMS):
        return None
    language = re.search(r"^Language: *(.*)$", header, re.MULTILINE)
    names_target = language is not None and primary_language(language[1].strip()) == primary_language(
        options.target_language
    )
    num_forms = _read_rule(target).num_forms
    if names_target and num_forms == _read_rule(own).num_forms:
        return None
    for message in plurals:
        if any(form.text and number >= (num_forms or 0) for number, form in message.forms.items()):
            logger.warning(
                "line %d: a plural has more forms than the rule of %s; the rule of the header stays, and is that of another language",
                message.line,
                options.target_language,
            )
            return None
    return target


_MOST_COMPARED = 200


def _values(rule: str) -> tuple[int, ...] | None:
    """Which form a rule gives to each number; rules with the same ones are one. None if it cannot be read."""
    from gettext import c2py

    found = _RULE.search(rule)
    if found is None or not 1 <= int(found[1][:9]) <= _MOST_FORMS:
        return None
    try:
        form_of = c2py(found[2])
        return (int(found[1]), *(form_of(number) for number in range(_MOST_COMPARED)))
    except (ValueError, ZeroDivisionError):
        return None


def _values_at_words(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in SPECIFICATION_AT_WORD.finditer(text))


# A specification of printf without a number or a name; %% is a per cent sign.
_IN_ORDER = re.compile(r"%(?:%|[-+#0]*+(?:\d++|\*)?(?:\.(?:\d++|\*))?(?:hh?|ll?|[qjztL])?[A-Za-z@])")


def _changes_order(message: _Message, texts: Mapping[bool, TranslatedSegment]) -> bool:
    """Whether a translation has the placeholders that printf counts in another order."""
    for is_singular, translation in texts.items():
        source = message.fields["msgid" if is_singular else "msgid_plural"].text
        given, found = (
            [each for each in _IN_ORDER.findall(text) if each != "%%"] for text in (source, string_of(translation))
        )
        if given != found and sorted(given) == sorted(found):
            return True
    return False


def _warn_of_order(lines: Sequence[int]) -> None:
    """Name the messages of `_changes_order`, by their lines."""
    if lines:
        logger.warning(
            "line %d: %d message(s) have placeholders such as %%s and %%d in another order, and are marked as fuzzy: give them numbers, as in %%2$d",
            lines[0],
            len(lines),
        )


def _filled(
    message: _Message,
    texts: Mapping[bool, TranslatedSegment],
    rule: _Rule,
    text: str,
    line_end: str,
) -> tuple[list[TranslatedSegment], list[Change]]:
    """The changes that give a message the translations that it lacks, and which translations they use.

    A plural gets as many forms as the rule has: some are added, and empty ones for which the rule has no number go.

    Args:
        text: of the file.
    """
    is_wrapped = "no-wrap" not in message.flags_in(text)
    if "msgid_plural" not in message.fields:
        empty = message.fields["msgstr"]
        written = _written("msgstr", string_of(texts[True]), line_end, is_wrapped=is_wrapped)
        return [texts[True]], [Change(empty.start, empty.end, written)]
    sources = {True: message.fields["msgid"].text, False: message.fields["msgid_plural"].text}
    used: dict[bool, TranslatedSegment] = {}
    changes, added = [], ""
    forms = message.forms
    for form in message.missing_forms(rule.num_forms):
        kind = rule.is_singular(form)
        if kind in texts:
            used[kind] = texts[kind]
        # A text without letters stays as it is; an empty form beside full ones would be shown as an empty text.
        string = string_of(texts[kind]) if kind in texts else sources[kind]
        written = _written(f"msgstr[{form}]", string, line_end, is_wrapped=is_wrapped)
        if form in forms:
            changes.append(Change(forms[form].start, forms[form].end, written))
        else:
            added += f"{line_end}msgstr[{form}] {written}"
    ends = [each.end for each in forms.values()]
    for (form, empty), before in zip(list(forms.items())[1:], ends, strict=False):
        if rule.num_forms is not None and form >= rule.num_forms and not empty.text:
            changes.append(Change(before, empty.end, ""))
    if added:
        changes.append(Change(ends[-1], ends[-1], added))
    return list(used.values()), changes


def _read_rule(text: str) -> _Rule:
    """The rule that a value of Plural-Forms gives; one that is not known if it gives none."""
    from gettext import c2py

    found = _RULE.search(text)
    if found is None or not 1 <= int(found[1][:9]) <= _MOST_FORMS:
        return _Rule(None)
    try:
        return _Rule(int(found[1]), c2py(found[2])(1))
    except (ValueError, ZeroDivisionError):
        return _Rule(int(found[1]))


def plural_rule(language: str) -> str | None:
    """The value of Plural-Forms for a language; None if it is not known."""
    from babel import UnknownLocaleError
    from babel.messages.plurals import PLURALS, get_plural

    primary = primary_language(language)
    customary = _CUSTOMARY_RULES.get(language.lower().replace("_", "-"))
    if customary := customary or _CUSTOMARY_RULES.get(primary):
        return customary
    if primary not in PLURALS:
        return None
    try:
        return str(get_plural(language.replace("-", "_")))
    except (UnknownLocaleError, ValueError):
        return str(get_plural(primary))


def _messages(text: str, watch: ReadingWatch) -> Iterator[_Message]:
    """The messages of a catalogue, in order; obsolete ones are comments."""
    message: _Message | None = None
    name, flags = "", None
    for number, match in enumerate(watch.over(_LINE.finditer(text)), 1):
        line = match[0].rstrip("\r\n")
        if line.startswith("#,"):
            flags = (match.start(), match.start() + len(line))
        field_match = _FIELD.match(line)
        end_of_name = field_match.end() if field_match else 0
        rest = line[end_of_name:].strip()
        strings = _STRINGS.match(line, end_of_name)
        if field_match is not None and (strings or not rest):
            name = field_match[1]
            if message is None or ("msgstr" in "".join(message.fields) and name in ("msgid", "msgctxt")):
                if message is not None:
                    yield _complete(message)
                message, flags = _Message(number, match.start(), flags=flags), None
            end = match.start() + end_of_name
            message.fields[name] = _Field(end, end, [])
        if strings is not None and message is not None:
            last = message.fields[name]
            last.start = last.start if last.strings else match.start() + strings.start(1)
            last.end = match.start() + strings.end(1)
            last.strings += _unescaped(strings[1])
        elif rest and not rest.startswith("#"):
            raise DataError(
                f"line {number}: neither a field such as msgid, nor a string, nor a comment",
                hint="msgfmt --check names what is wrong with a PO file",
            )
    if message is not None:
        yield _complete(message)


def _complete(message: _Message) -> _Message:
    if "msgid_plural" in message.fields and "msgstr" in message.fields:
        raise DataError(
            f"line {message.line}: a message has a plural (msgid_plural), but one translation for both (msgstr)",
            hint='write msgstr[0] "" and msgstr[1] "" in its place; msgfmt --check names such faults',
        )
    without_text = next((name for name, found in message.fields.items() if not found.strings), None)
    if without_text is not None:
        raise DataError(
            f"line {message.line}: a message whose {without_text} has no string",
            hint=f'an empty one is written {without_text} ""',
        )
    if "msgid" in message.fields and any(name.startswith("msgstr") for name in message.fields):
        return message
    raise DataError(
        f"line {message.line}: a message without msgid or msgstr",
        hint="msgfmt --check names what is wrong with a PO file",
    )


def _unescaped(quoted: str) -> list[str]:
    """The texts of the strings of a line; most lines have one."""
    from polib import unescape

    several = _SEVERAL_STRINGS.fullmatch(quoted)
    strings = re.findall(_ONE_STRING, quoted) if several else [quoted]
    return [unescape(string[1:-1]) for string in strings]


def _written(name: str, text: str, line_end: str, *, is_wrapped: bool) -> str:
    """A string as in a PO file; a long one, or one of several lines, begins on the next line.

    Args:
        name: of its field, such as msgstr.
        is_wrapped: whether a long line is divided, as it is without the flag no-wrap.
    """
    from polib import escape

    lines = [escape(line) for line in re.findall(r"[^\n]+\n?|\n", text)]
    parts = [part for line in lines for part in (_wrapped(line) if is_wrapped else [line])]
    if len(parts) > 1 or (parts and is_wrapped and _num_columns(f'{name} "{parts[0]}"') > _WIDTH):
        parts.insert(0, "")
    return line_end.join(f'"{part}"' for part in parts) or '""'


def _wrapped(line: str) -> list[str]:
    """An escaped line in parts that fit into a line of the file, each with the white space behind its words."""
    parts, columns = [""], len('""')
    for word in re.findall(r"[^ ]+ *| +", line):
        num_columns = _num_columns(word)
        if parts[-1] and columns + num_columns > _WIDTH:
            parts.append("")
            columns = len('""')
        parts[-1] += word
        columns += num_columns
    return parts


def _num_columns(text: str) -> int:
    """How many columns a text takes; a sign of Chinese, Japanese or Korean takes two."""
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _marked_as_fuzzy(message: _Message, text: str, line_end: str) -> Change:
    """The change that adds the flag fuzzy to a message."""
    if message.flags is None:
        return Change(message.start, message.start, f"#, fuzzy{line_end}")
    start, end = message.flags
    flags = text[start:end]
    is_fuzzy = "fuzzy" in re.split(r"[#,\s]+", flags)
    return Change(start, end, flags if is_fuzzy else f"#, fuzzy{flags[1:]}")
