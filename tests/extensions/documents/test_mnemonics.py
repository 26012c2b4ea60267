"""The marks of keys in labels of programs."""

import polib
import pytest

from transformer_cli.config.data import Direction
from transformer_cli.extensions.documents.json import read_json
from transformer_cli.extensions.documents.mnemonics import (
    KeysOfLabels,
    Mnemonic,
    with_mnemonic,
    without_mnemonic,
)
from transformer_cli.extensions.documents.po import read_po

from .fake_translators import WordByWord, done, translated

HEADER = 'msgid ""\nmsgstr "Language: en\\nContent-Type: text/plain; charset=UTF-8\\n"\n\n'
WORDS = {"Cancel": "Annulla", "File": "Archivio", "Save": "Salva", "As": "come", "Exit": "Esci", "Copy": "Copia"}


def italian(word: str) -> str:
    return WORDS.get(word.rstrip("."), word) + word[len(word.rstrip(".")) :]


@pytest.mark.parametrize(
    ("label", "without", "key"),
    [
        ("_Cancel", "Cancel", "C"),
        ("&File", "File", "F"),
        ("Save &As...", "Save As...", "A"),
        ("Save _as", "Save as", "a"),
        ("E&xit", "Exit", "x"),
        ("Prefere&nces", "Preferences", "n"),
        ("E_xit", "Exit", "x"),
        ("Cancel(&C)", "Cancel", "C"),
        ("Open (_O)...", "Open...", "O"),
        ("&1 file", "1 file", "1"),
        ("Ope&n", "Open", "n"),
        ("Sel_ect All", "Select All", "e"),
        ("Vor_schau", "Vorschau", "s"),
        ("\u00d6&ffnen", "\u00d6ffnen", "f"),
        ("Und&o typing", "Undo typing", "o"),
        ("&\u00dcber", "\u00dcber", "\u00dc"),
        ("Confirm e&xit", "Confirm exit", "x"),
    ],
)
def test_the_mark_of_a_key_is_taken_out(label: str, without: str, key: str) -> None:
    found = without_mnemonic(label)
    assert found is not None
    assert (found[0], found[1].key) == (without, key)


@pytest.mark.parametrize(
    "text",
    [
        "Fish & chips",
        "Give him &6 dogs",
        "R&D",
        "AT&T",
        "Q&A",
        "R&&D",
        "black&white",
        "Black&White",
        "Hide too&lbar",
        "m&m",
        "Allow GM_cookie here",
        "HTTP_proxy",
        "PB&J",
        "Tom &amp; Anna",
        "&lt;b&gt;",
        "snake_case",
        "_id",
        "_small_ dogs",
        "__name__",
        "See https://a.b/?x=1&y=2 now",
        "&File and &Edit",
        "%(a_B)s",
        "Cancel",
        "",
        "&",
        "_",
        "x" * 300 + " &File",
    ],
)
def test_other_signs_are_no_marks_of_keys(text: str) -> None:
    assert without_mnemonic(text) is None


def test_in_a_label_of_qt_a_key_is_inside_a_word_of_small_letters() -> None:
    found = without_mnemonic("Hide too&lbar", is_of_qt=True)
    assert found == ("Hide toolbar", Mnemonic("&", "l", False))
    assert without_mnemonic("Move u&p", is_of_qt=True) == ("Move up", Mnemonic("&", "p", False))
    assert not any(without_mnemonic(text, is_of_qt=True) for text in ("drag&drop", "R&D", "q&a", "b&w", "too_lbar"))


READ = {
    "save",
    "all",
    "find",
    "next",
    "windows",
    "close",
    "show",
    "house",
    "file",
    "name",
    "filename",
    "in",
    "put",
    "input",
    "user",
    "id",
    "scan",
}


@pytest.mark.parametrize(
    ("label", "without"),
    [
        ("Save a_ll", "Save all"),
        ("Find ne_xt...", "Find next..."),
        ("Close wind_ows", "Close windows"),
        ("Stop sca_nning", "Stop scanning"),
        ("Show hou&se", "Show house"),
        ("Show wind&ows", "Show windows"),
        ("The file_name", None),
        ("Show in_put", None),
        ("Set user_id", None),
        ("Set cfg_xml", None),
        ("Show black&white", None),
        ("hou_se", None),
    ],
)
def test_a_mark_inside_a_word_that_training_has_read_is_no_sign_of_a_name(label: str, without: str | None) -> None:
    found = without_mnemonic(label, READ.__contains__)
    assert (found and found[0]) == without


def test_a_label_with_a_mark_inside_a_later_word_is_translated_and_marked() -> None:
    text = HEADER + 'msgid "Save fi_le"\nmsgstr ""\n\nmsgid "Save my_file"\nmsgstr ""\n'
    words = {"Save": "Salva", "file": "archivio"}
    translator = WordByWord(lambda word: words.get(word, word), read_words=frozenset(["file", "save"]))
    found = polib.pofile(done(read_po(text.encode()), translator).data.decode())
    assert [entry.msgstr for entry in found] == ["_Salva archivio", "Salva my_file"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("label", "mnemonic", "language", "marked"),
    [
        ("Salva come...", Mnemonic("_", "C", False), "it", "Salva _come..."),
        ("Annulla", Mnemonic("&", "C", False), "it", "&Annulla"),
        ("%s Annulla", Mnemonic("&", "s", False), "it", "%s &Annulla"),
        ("「Datei」", Mnemonic("&", "F", False), "de", "「&Datei」"),
        ("保存…", Mnemonic("&", "s", False), "ja", "保存(&S)…"),
        ("Abbrechen:", Mnemonic("&", "C", True), "de", "Abbrechen(&C):"),
        ("{name}", Mnemonic("&", "n", False), "it", "{name}(&N)"),
    ],
)
def test_the_mark_stands_before_a_word_or_behind_the_label(
    label: str, mnemonic: Mnemonic, language: str, marked: str
) -> None:
    assert with_mnemonic(label, mnemonic, language) == marked


def test_labels_of_a_catalogue_keep_a_key_at_the_beginning_of_a_word() -> None:
    labels = ["_Cancel", "&File", "Save &As...", "E_xit", "&Copy", "Cancel(&C)"]
    text = HEADER + "\n".join(f'msgid "{label}"\nmsgstr ""\n' for label in labels)
    found = polib.pofile(done(read_po(text.encode()), WordByWord(italian)).data.decode())
    assert [entry.msgstr for entry in found] == [
        "_Annulla",
        "&Archivio",
        "&Salva come...",
        "_Esci",
        "&Copia",
        "Annulla(&C)",
    ]


def test_a_label_whose_translation_is_equal_keeps_its_bytes() -> None:
    same = WordByWord(languages=Direction("en", "ja"))
    source = '{"a": "\\u0026File", "b": "E&xit \\u00e9"}'
    assert translated(read_json(source.encode()), same) == source


def test_labels_beside_each_other_get_different_keys() -> None:
    words = {"Open": "Apri", "Add": "Aggiungi", "Close": "Chiudi", "Search": "Cerca", "Copy": "Copia", "Ok": "A"}
    labels = ["_Open", "_Add", "_Close", "_Search", "Cop_y", "O_k", "Sa_ve"]
    text = HEADER + "\n".join(f'msgid "{label}"\nmsgstr ""\n' for label in labels)
    catalogue = done(read_po(text.encode()), WordByWord(lambda word: words.get(word, word))).data
    assert [entry.msgstr for entry in polib.pofile(catalogue.decode())] == [
        "_Apri",
        "A_ggiungi",
        "_Chiudi",
        "C_erca",
        "C_opia",
        "_A",
        "",
    ]


def test_a_key_that_the_source_has_twice_belongs_to_two_menus() -> None:
    keys = KeysOfLabels("it")
    assert keys.marked("Apri", Mnemonic("&", "o", False)) == "&Apri"
    assert keys.marked("Apri tutto", Mnemonic("&", "O", False)) == "&Apri tutto"
    keys.keep(Mnemonic("&", "c", False))
    assert keys.marked("Cc", Mnemonic("&", "k", False)) == "&Cc"  # no letter is free
    assert keys.marked("a & b", Mnemonic("&", "b", False)) == "a & &b"
