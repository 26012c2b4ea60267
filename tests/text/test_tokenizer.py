import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as HuggingFaceTokenizer

from transformer_cli.config import TokenizerConfig
from transformer_cli.process.errors import ConfigError, DataError, TryAgainError
from transformer_cli.text.normalization import SPECIALS
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer
from transformer_cli.text.tokenizer_file import tokenizer_errors_explained

TEXTS = [
    "L'acqua dell'isola è blu, e l'isola è bella.",
    "Il gatto beve l'acqua; bevo acqua (fredda) alle 10:30!",
    "She doesn't know John's well-known “friends”.",
    'Costa 3,50 euro? No: 12.000, disse "Ciao".',
    "日本語のテキスト",
]
KINDS = {
    "wordlevel": TokenizerConfig(),
    "bpe": TokenizerConfig(kind="bpe", vocab_size=300),
    "unigram": TokenizerConfig(kind="unigram", vocab_size=320),
}
TOKENIZERS = {kind: train_tokenizer(TEXTS, config) for kind, config in KINDS.items()}
SUBWORD_KINDS = [kind for kind in KINDS if kind != "wordlevel"]
# Words, marks and spaces that meet in every order.
MARKS = "( ) \" ' \u2019 “ ” „ « » - \u2013 / . , : 3 12 $ € [UNK] [EOS] [PAD] [ ]"
WORDS = "l' acqua dell' po' 's don't é e\u0301 \u0301 日本 ー คำ 한국 👩\u200d👧 \u200d"
SPACES = [" ", "  ", "\t", "\u00a0", "\n", "\0", "\x85"]
FRAGMENTS = st.sampled_from([*MARKS.split(" "), *WORDS.split(" "), *SPACES])
TANGLED = st.lists(FRAGMENTS, max_size=12).map("".join)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | TANGLED


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_known_text_comes_back_exactly(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(ANY_TEXT)
@example("l' acqua")
@example("l'  acqua")
@example(" acqua")
@example("l'[UNK]")
@example("[UNK] [UNK]")
@example("3. 5")
@example(" (acqua")
@example("")
@example(" ")
def test_any_text_comes_back_exactly_where_its_words_are_known(text: str) -> None:
    tokenizer = train_tokenizer([text, "word"], TokenizerConfig())
    assert tokenizer.decode(tokenizer.encode(text)) == nfc(text)
    assert tokenizer.unk_id not in tokenizer.encode(text)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(ANY_TEXT, st.sampled_from(SUBWORD_KINDS))
def test_subwords_know_every_text_and_give_it_back(text: str, kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == nfc(text)
    assert not set(ids) & set(range(len(SPECIALS)))


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(
    st.lists(FRAGMENTS | st.sampled_from(["gatto", "Ciao", "x"]), max_size=12),
    st.sampled_from(list(KINDS)),
)
@example(["po'", "gatto"], "bpe")
def test_words_met_before_do_not_change_the_ids(words: list[str], kind: str) -> None:
    text = " ".join(words)
    # The library encodes the whole text and has no cache of words.
    engine = HuggingFaceTokenizer.from_str(TOKENIZERS[kind].to_json())
    engine.encode_special_tokens = True
    for _ in range(2):
        assert TOKENIZERS[kind].encode(text) == engine.encode(text).ids


@pytest.mark.parametrize("kind", KINDS)
def test_nfd_text_has_the_ids_of_nfc_text(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    decomposed = unicodedata.normalize("NFD", TEXTS[0])
    assert decomposed != TEXTS[0]
    assert tokenizer.encode(decomposed) == tokenizer.encode(TEXTS[0])


def ids_of(text: str) -> list[int]:
    return TOKENIZERS["wordlevel"].encode(text)


def test_a_word_has_one_entry_at_the_start_inside_after_an_elision_and_in_brackets() -> None:
    (acqua,) = ids_of("acqua")
    for text in (
        "bevo acqua",
        "l'acqua",
        "dell'acqua",
        "(acqua",
        '"acqua',
        "“acqua",
        "bevo 'acqua",
    ):
        assert ids_of(text)[-1] == acqua, text


def test_an_elided_article_is_one_piece_and_an_english_clitic_another() -> None:
    tokenizer = TOKENIZERS["wordlevel"]
    assert tokenizer.tokens(ids_of("l'acqua")) == ["l'", "acqua"]
    assert tokenizer.tokens(ids_of("doesn't John's")) == ["doesn", "'t", "John", "'s"]


def test_numbers_are_whole_as_words_and_digit_by_digit_as_subwords() -> None:
    assert TOKENIZERS["wordlevel"].tokens(ids_of("10:30")) == ["10", ":", "30"]
    for kind in SUBWORD_KINDS:
        tokenizer = TOKENIZERS[kind]
        assert [name for name in tokenizer.tokens(tokenizer.encode("987")) if name != "␣"] == [
            "9",
            "8",
            "7",
        ]


def test_each_sign_of_a_script_without_spaces_is_a_word() -> None:
    tokenizer = TOKENIZERS["wordlevel"]
    assert tokenizer.tokens(tokenizer.encode("日本語")) == ["日", "本", "語"]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("special", [*SPECIALS, "</s>", "<pad>", "<2de>"])
def test_the_name_of_a_special_in_a_text_is_plain_text_also_after_a_reload(kind: str, special: str) -> None:
    reloaded = Tokenizer.from_json(TOKENIZERS[kind].to_json())
    for tokenizer in (TOKENIZERS[kind], reloaded):
        ids = tokenizer.encode(f"acqua{special} {special}")
        assert not {tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id} & set(ids)
        if kind != "wordlevel":
            assert tokenizer.decode(ids) == f"acqua{special} {special}"


@pytest.mark.parametrize("kind", KINDS)
def test_specials_have_the_first_ids(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    assert tokenizer.tokens([0, 1, 2, 3]) == list(SPECIALS)
    assert (tokenizer.unk_id, tokenizer.pad_id, tokenizer.sos_id, tokenizer.eos_id) == (0, 1, 2, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_leaves_out_specials_but_shows_what_is_unknown(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    first, second = (
        tokenizer.encode("gatto"),
        tokenizer.encode("gatto beve")[len(tokenizer.encode("gatto")) :],
    )
    ids = [tokenizer.sos_id, *first, tokenizer.unk_id, *second, tokenizer.eos_id, tokenizer.pad_id]
    assert tokenizer.decode(ids) == "gatto [UNK] beve"
    assert tokenizer.decode([tokenizer.unk_id]) == "[UNK]"


def test_an_unknown_word_stands_where_the_word_stood() -> None:
    tokenizer = TOKENIZERS["wordlevel"]
    assert tokenizer.decode(tokenizer.encode("Il xyz beve l'xyz (xyz).")) == "Il [UNK] beve l'[UNK] ([UNK])."


def test_a_lone_surrogate_is_replaced() -> None:
    tokenizer = TOKENIZERS["bpe"]
    assert tokenizer.decode(tokenizer.encode("a \ud800 b")) == "a ? b"


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["a", "1. ", "a\u0301\u0323", "日", " "])
def test_time_grows_with_the_length_of_a_line_and_no_faster(kind: str, unit: str) -> None:
    tokenizer = TOKENIZERS[kind]
    tokenizer.decode(tokenizer.encode(unit * 100))

    def seconds(num_characters: int) -> float:
        started_at = time.process_time()
        tokenizer.decode(tokenizer.encode(unit * (num_characters // len(unit))))
        return time.process_time() - started_at

    # A quadratic step would take 400 times as long.
    assert seconds(200_000) < 100 * seconds(10_000) + 0.1


@pytest.mark.long
def test_a_line_of_300_kilobytes_takes_seconds_at_most() -> None:
    started_at = time.process_time()
    TOKENIZERS["bpe"].encode("1. " * 100_000)
    assert time.process_time() - started_at < 3


class PanicException(BaseException):
    """Has the same name as the exception of the `tokenizers` library, which cannot be imported."""


@pytest.mark.parametrize("error", [PanicException("index out of bounds"), Exception("Invalid")])
def test_a_panic_of_the_engine_becomes_an_error(error: BaseException) -> None:
    with (
        pytest.raises(DataError, match=f"cannot be built: {error}"),
        tokenizer_errors_explained("cannot be built"),
    ):
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), ConfigError("no")])
def test_other_errors_stay_what_they_are(error: BaseException) -> None:
    with pytest.raises(type(error)), tokenizer_errors_explained("cannot be built"):
        raise error


def test_a_panic_for_lack_of_memory_is_an_error_to_try_again() -> None:
    with (
        pytest.raises(TryAgainError, match="out of memory"),
        tokenizer_errors_explained("cannot be built"),
    ):
        raise PanicException("The global thread pool has not been initialized: ThreadPoolBuildError")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(alphabet="ab'(è😀本. \t", max_size=15))
def test_each_token_has_a_place_in_the_text_and_in_the_decoded_text(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode(text)
    spans = tokenizer.spans(text)
    assert len(spans) == len(ids)
    assert {*range(len(text))} <= {place for span in spans for place in range(*span)}
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    decoded, ended = tokenizer.decode(ids), [*ids, tokenizer.eos_id]
    places = tokenizer.decoded_spans(ended)
    assert len(places) == len(ended)
    starts, ends = [0, *(end for _, end in places)][:-1], [start for start, _ in places]
    assert starts == ends  # without gaps
    assert places[-1] == (len(decoded), len(decoded))
    for index, (start, end) in zip(ids, places, strict=False):
        if kind == "wordlevel":
            assert decoded[start:end].strip() == tokenizer.tokens([index])[0].replace("␣", "")


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_the_bytes_of_a_rare_letter_are_shown_as_bytes(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    assert tokenizer.tokens(tokenizer.encode("\u0416\ufffd"))[-5:] == ["<0xD0>", "<0x96>", "<0xEF>", "<0xBF>", "<0xBD>"]


def test_known_words_are_counted_without_marks_and_special_tokens() -> None:
    tokenizer = train_tokenizer(["uno, due tre."], TokenizerConfig())
    assert tokenizer.count_words(tokenizer.encode("due, tre quattro.")) == 2
    assert tokenizer.count_words(range(tokenizer.vocab_size)) == 3
    subwords = train_tokenizer(["uno, due tre."], TokenizerConfig(kind="bpe", vocab_size=270))
    assert subwords.count_words(range(subwords.vocab_size)) == 0


def test_tokens_with_a_letter_or_digit_are_counted() -> None:
    tokenizer = train_tokenizer(["the cat , 7 dogs ."] * 3, TokenizerConfig(kind="wordlevel"))
    ids = [*tokenizer.encode("the cat, 7 unicorns."), tokenizer.eos_id, tokenizer.pad_id]
    assert tokenizer.count_written(ids) == 4
