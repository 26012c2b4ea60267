"""Letters by themselves that name something, such as a key, an option, a grade or a vitamin: they stay in a translation.

No language is given. So a letter that is a word of some language, such as I, A or E, counts only where no such word can stand.
"""

import re

ALONE = r"(?<![\w.'\u2019&/@#$%\\+*~^=<>{}|:-])[A-Zbfgpqrx](?![\w'\u2019&/@#$%\\+*~^=<>{}|-]|\.[\w-]|:\S)"
"""A capital letter of Latin script that touches no other word, or a small one that is a word of no language."""
_ALONE = re.compile(ALONE)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Of keys, behind which even I and A are letters.
_KEYS = _words(
    "press pressed presses pressing hit key keys button buttons tasto tasti premi premere touche touches appuyez taste tasten tecla teclas pulsa"
    " pulse pulsar pressione"
)
# Before their letters in a sentence; of English, Italian, French, German, Spanish and Portuguese.
_NAMED = _KEYS | _words(
    "option options vitamin vitamins hepatitis influenza group groups grade grades plan plans type types class classes category categories level"
    " section sections part parts item items step steps team teams column row rows figure appendix annex letter letters block zone gate terminal"
    " platform entrance exit wing room building hall lane bus drive disk variant version series schedule exhibit form article answer answers"
    " question choice protein note chord string point points axis size"
    " opzione opzioni vitamina vitamine epatite gruppo gruppi piano tipo classe classi categoria livello sezione parte punto fase squadra colonna"
    " riga figura allegato lettera blocco zona porta uscita edificio linea variante serie modulo articolo risposta scelta proteina nota asse"
    " h\u00e9patite grippe groupe groupes niveau cat\u00e9gorie partie \u00e9tape \u00e9quipe colonne ligne annexe lettre bloc porte sortie b\u00e2timent"
    " formulaire r\u00e9ponse choix prot\u00e9ine axe plan"
    " gruppe gruppen klasse klassen typ kategorie stufe abschnitt teil punkt spalte zeile abbildung anhang buchstabe linie gleis ausgang"
    " geb\u00e4ude halle variante antwort aufgabe"
    " opci\u00f3n hepatitis grupo grupos clase nivel secci\u00f3n paso equipo columna fila letra bloque puerta salida l\u00ednea respuesta"
    " op\u00e7\u00e3o hepatite classe n\u00edvel se\u00e7\u00e3o passo equipe coluna resposta"
)
# Behind their letters, as in "the S key"; of two languages they would stand before them.
_BEHIND = _words("key keys button buttons minor major flat sharp drive string clef taste")
_DETERMINERS = _words("the this that your its")
# X-ray, T-shirt, U-turn and the like without a hyphen are words; of "V secolo" the letter is a number.
_NO_NAMES = _words(
    "ray rays shirt shirts turn turns neck day beam bone word words class secolo si\u00e8cle siglo s\u00e9culo"
)
_WORD_BEFORE = re.compile(r"([^\W\d_]+)[ \u00a0]\Z")
_LETTER_BEFORE = re.compile(r"(?<![^\W_])[A-HJ-Z](?:,| (?:and|or|e|ed|o|et|ou|und|oder|y))[ \u00a0]\Z")
_WORD_BEHIND = re.compile(r"[ \u00a0]([^\W\d_]+)")
_ENDS = re.compile(r"[,;:!?)\]\"\u00bb\u201d]|\.(?:\s*\Z|\s)|\s*\Z")
_JOINS = _words("to and or is")
_OPENING, _CLOSING = '"\u00ab\u201c\u201e(', '"\u00bb\u201d\u201c)'
_NEAR = 30  # characters
_ADDRESS = r"(?<!\S)[^\s<>]*(?:[@/%][^\s<>/]+|\{[^\s{}<>]+\})[^\s<>]*"
_ADDRESS_BEFORE, _ADDRESS_BEHIND = re.compile(rf"{_ADDRESS} \Z"), re.compile(rf" {_ADDRESS}")
_JOINED_KEYS = re.compile(r"(?<!\w)(?:(?:Ctrl|Strg|Cmd) \w|(?:Alt|Shift) [A-Z])")


def has_letter_as_name(text: str) -> bool:
    """Whether a text has a letter that names something, or keys that a space joins."""
    return any(is_name(text, match.start()) for match in _ALONE.finditer(text)) or _JOINED_KEYS.search(text) is not None


def is_name(text: str, place: int) -> bool:
    """Whether the letter by itself at a place names something."""
    letter, before, behind = text[place], text[max(0, place - _NEAR) : place], text[place + 1 : place + 1 + _NEAR]
    if letter.islower():  # beside an address or a placeholder, where a model does not see that it is a word
        is_beside = _ADDRESS_BEFORE.search(before) is not None or _ADDRESS_BEHIND.match(behind) is not None
        return is_beside and re.search(r"\d\s?\Z", before) is None and re.match(r"\.\s*\S", behind) is None
    if not any(map(str.isalnum, before + behind)) and sum(map(str.isalnum, text)) == 1:
        return letter != "I"  # the whole text
    if before and before[-1] in _OPENING and behind and behind[0] in _CLOSING:
        return not before[-2:-1].isalnum()
    word_behind = match[1] if (match := _WORD_BEHIND.match(behind)) else ""
    if word_behind.isupper() and len(word_behind) > 1:
        return False  # words in capital letters
    word_before = match[1] if (match := _WORD_BEFORE.search(before)) else ""
    is_end = _ENDS.match(behind) is not None
    if word_before.casefold() in _NAMED:
        if letter == "I":
            return word_before.casefold() in _KEYS and (is_end or word_behind in _JOINS or word_behind in _BEHIND)
        return letter not in "AEOY" or not word_behind[:1].isupper()
    if word_behind in _BEHIND and (letter not in "AIO" or word_before.casefold() in _DETERMINERS):
        return word_before != ""
    is_initial = word_behind[:1].isupper() or re.match(r"\.\s+\w", behind) is not None
    if letter == "I" or is_initial or word_behind in _NO_NAMES:
        return False
    # Also with a space behind a number, as in seat 12 A; a unit there stays, too.
    is_inside = re.search(r"\d[ \u00a0]\Z", before) is not None
    is_inside = (
        is_inside or (len(word_before) > 1 and word_before.islower()) or _LETTER_BEFORE.search(before) is not None
    )
    return is_inside and (letter not in "AEOY" or is_end or word_behind in _JOINS)
