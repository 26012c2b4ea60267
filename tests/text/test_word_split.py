import pytest

from transformer_cli.text.normalization import is_one_piece
from transformer_cli.text.tokenizer import can_be_encoded_alone
from transformer_cli.text.tokenizer_file import Layout, TokenizerParts, build


def pieces(text: str, kind: str = "WordLevel") -> list[str]:
    """How a text is cut, before any vocabulary."""
    layout = Layout(kind)
    engine = build(TokenizerParts(layout, layout.empty_model()))
    assert engine.normalizer is not None
    assert engine.pre_tokenizer is not None
    cut = engine.pre_tokenizer.pre_tokenize_str(engine.normalizer.normalize_str(text))
    return [piece for piece, _ in cut]


CUTS = {
    "Il gatto dorme.": [" Il", " gatto", " dorme", "."],
    "l'acqua dell\u2019isola": [" l'", " acqua", " dell\u2019", " isola"],
    "un po' di": [" un", " po", "'", " ", " di"],
    "don't, John's, WE'LL": [" don", "'t", ",", " John", "'s", ",", " WE", "'LL"],
    "«Ciao» (bene)": ["«", " Ciao", "»", " ", "(", " bene", ")"],
    "“Ciao” 'bene'": ["“", " Ciao", "”", " ", "'", " bene", "'"],
    "„Gut“ ist": ["„", " Gut", "“", " ist"],
    "well-known and/or": [" well", "-", " known", " and", "/", " or"],
    "alle 10:30 e $3.50": [" alle", " 10", ":", " 30", " e", " ", "$", " 3", ".", " 50"],
    "10, 20": [" 10", ",", " ", " 20"],
    "3. Poi": [" 3", ".", " Poi"],
    "a  b\tc": [" a", " ", " b", "\t", "c"],
    "3km": [" 3", "km"],
    "...": [".", ".", "."],
    "日本語 ラーメン": ["日", "本", "語", " ", "ラ", "ー", "メ", "ン"],
    "한국어 문장": [" 한국어", " 문장"],
    "\u0645\u06cc\u200c\u0631\u0648\u062f": [" \u0645\u06cc\u200c\u0631\u0648\u062f"],
    "[SOS]": ["[", "SOS", "]"],
    "": [],
}


@pytest.mark.parametrize("text", CUTS)
def test_a_text_is_cut_into_words_that_own_their_space_and_single_marks(text: str) -> None:
    assert pieces(text) == CUTS[text]


@pytest.mark.parametrize("kind", ["BPE", "Unigram"])
def test_subwords_keep_runs_of_unspaced_scripts_whole_and_part_digits(kind: str) -> None:
    # Ġ is how the space byte is written.
    assert pieces("ab 105", kind) == ["Ġab", "Ġ1", "0", "5"]
    assert len(pieces("日本語", kind)) == 1
    assert len(pieces("日本語 ラーメン", kind)) == 2


@pytest.mark.parametrize(
    ("word", "is_alone"),
    [
        ("casa", True),
        ("casa.", True),
        ("3.", False),
        ("l'", False),
        ("Obst-", False),
        ("(", False),
        ("“", False),
        ("$", False),
        ("5", True),
        (")", True),
    ],
)
def test_a_word_can_be_encoded_alone_unless_it_takes_away_the_next_space(word: str, is_alone: bool) -> None:
    assert can_be_encoded_alone(word) is is_alone


def test_a_piece_reaches_over_no_edge() -> None:
    assert is_one_piece("Ġgatto")
    assert is_one_piece("atto")
    assert not is_one_piece("to.")
    assert not is_one_piece("Ġ(")
    assert is_one_piece("Ã")  # half of a letter
