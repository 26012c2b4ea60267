"""Text beyond ASCII: no token is a fragment of a character that the vocabulary could hold whole."""

import functools
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from tokenizers import Tokenizer as HuggingFaceTokenizer

from transformer_cli.config import TokenizerConfig
from transformer_cli.text.normalization import SPECIALS
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer
from transformer_cli.text.tokenizer_file import BYTE_LEVEL_ALPHABET, Layout, TokenizerParts, write

TEXTS = {
    "Japanese": "私は学生です。彼女は東京の大学で日本語を勉強しています。今日はとても寒いですね。",
    "Japanese words": "私 は 学生 です 。 彼女 は 東京 の 大学 で 日本 語 を 勉強 し て い ます 。",
    "Chinese": "我是学生。她在北京大学学习中文。今天天气很冷。",
    "Thai": "ฉันเป็นนักเรียน เธอเรียนภาษาไทยที่มหาวิทยาลัย วันนี้อากาศหนาวมาก",
    "Arabic": "أَنَا طَالِبٌ. هِيَ تَدْرُسُ اللُّغَةَ العربية في الجامعة. الطقس بارد اليوم.",
    "Hindi": "मैं एक विद्यार्थी हूँ। वह विश्वविद्यालय में हिन्दी पढ़ती है। आज बहुत ठंड है।",
    "Korean": "나는 학생입니다. 그녀는 대학교에서 한국어를 공부합니다. 오늘은 매우 춥습니다.",
    "Russian": "Я студент. Она изучает русский язык в университете. Сегодня очень холодно.",
    "Vietnamese": "Tôi là sinh viên. Cô ấy học tiếng Việt ở trường đại học. Hôm nay trời rất lạnh.",
}
KINDS = ["bpe", "unigram"]
EMOJI = "👩\u200d👧 ☃ 𠮷"


@functools.cache
def trained(kind: str, text: str, vocab_size: int = 600, **settings: bool) -> Tokenizer:
    sentences = [*text.split("。"), *text.split("."), text] * 20
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": vocab_size})
    return train_tokenizer(sentences, config, **settings)


@pytest.mark.long
@pytest.mark.parametrize("script", TEXTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_token_of_known_characters_is_a_fragment_of_one(kind: str, script: str) -> None:
    tokenizer = trained(kind, TEXTS[script])
    ids = tokenizer.encode(TEXTS[script])
    assert not any("\ufffd" in tokenizer.decode([index]) for index in ids)
    assert not any(name.startswith("<0x") for name in tokenizer.tokens(ids))


@pytest.mark.long
@pytest.mark.parametrize("script", TEXTS)
@pytest.mark.parametrize("kind", KINDS)
def test_any_text_comes_back_also_after_a_reload(kind: str, script: str) -> None:
    tokenizer = trained(kind, TEXTS[script])
    reloaded = Tokenizer.from_json(tokenizer.to_json())
    library = HuggingFaceTokenizer.from_str(tokenizer.to_json())
    library.encode_special_tokens = True
    for text in (*TEXTS.values(), EMOJI, "<0xE6>", " [EOS] l' acqua\t(x)\0"):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)
        assert reloaded.encode(text) == library.encode(text).ids == ids
        assert not set(ids) & set(range(len(SPECIALS)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vocab_size", [260, 261, 270, 300])
def test_characters_for_which_there_is_no_room_are_bytes(kind: str, vocab_size: int) -> None:
    tokenizer = trained(kind, TEXTS["Japanese"], vocab_size)
    assert tokenizer.vocab_size <= vocab_size
    assert tokenizer.decode(tokenizer.encode(TEXTS["Japanese"])) == TEXTS["Japanese"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_frequent_word_of_japanese_is_one_token(kind: str) -> None:
    tokenizer = trained(kind, TEXTS["Japanese words"])
    assert tokenizer.tokens(tokenizer.encode("彼女 は 学生")) == ["彼女", "は", "学生"]


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
def test_another_process_learns_the_same_from_japanese(kind: str) -> None:
    script = (
        "import sys\n"
        "from tests.text.test_scripts import TEXTS, trained\n"
        "sys.stdout.buffer.write(trained(sys.argv[1], TEXTS['Japanese']).to_json().encode())\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", script, kind]
    finished = subprocess.run(command, cwd=root, check=True, capture_output=True)
    assert finished.stdout.decode() == trained(kind, TEXTS["Japanese"]).to_json()


@pytest.mark.parametrize("kind", KINDS)
def test_text_that_is_mostly_ascii_is_still_learned_on_bytes(kind: str) -> None:
    layout = trained(kind, "L'acqua dell'isola è blu, e l'isola è bella.").parts.layout
    assert layout.is_byte_level


@pytest.mark.parametrize("kind", ["BPE", "Unigram"])
def test_a_file_of_bytes_for_japanese_is_read_with_the_same_ids(kind: str) -> None:
    """Earlier versions wrote such files for every text."""
    layout = Layout(kind)
    pieces = [*SPECIALS, *BYTE_LEVEL_ALPHABET]
    model = layout.empty_model()
    if kind == "BPE":
        model["vocab"] = {piece: index for index, piece in enumerate(pieces)}
    else:
        model["vocab"] = [[piece, -1.0] for piece in pieces]
    content = write(TokenizerParts(layout, model))
    library = HuggingFaceTokenizer.from_str(content)
    tokenizer = Tokenizer.from_json(content)
    text = TEXTS["Japanese"]
    assert tokenizer.encode(text) == library.encode(text).ids
    assert len(tokenizer.encode(text)) == len(text.encode())
    assert tokenizer.decode(tokenizer.encode(text)) == text


WHOLE_WORDS = {
    "Arabic": (TEXTS["Arabic"], ["أَنَا", "طَالِبٌ", "."]),
    "Hindi": (TEXTS["Hindi"], ["मैं", "एक", "विद्यार्थी", "हूँ", "।"]),
    "Korean": (TEXTS["Korean"], ["나는", "학생입니다", "."]),
    "Japanese words": (TEXTS["Japanese words"], ["私", "は", "学生", "です"]),
    "Chinese words": ("我 是 学生 。 她 在 北京 学习 中文 。", ["我", "是", "学生"]),
    "Thai words": ("ฉัน เป็น นักเรียน เธอ เรียน ภาษา ไทย", ["ฉัน", "เป็น", "นักเรียน"]),
}


@pytest.mark.parametrize("script", WHOLE_WORDS)
def test_words_between_spaces_are_whole_in_a_word_vocabulary(script: str) -> None:
    text, first_words = WHOLE_WORDS[script]
    tokenizer = train_tokenizer([text], TokenizerConfig())
    names = [name for name in tokenizer.tokens(tokenizer.encode(text)) if name != "␣"]
    assert names[: len(first_words)] == first_words
    reloaded = Tokenizer.from_json(tokenizer.to_json())
    assert reloaded.decode(reloaded.encode(text)) == text


@pytest.mark.parametrize("script", ["Japanese", "Chinese", "Thai"])
def test_without_spaces_between_words_each_sign_is_one_with_its_marks(script: str) -> None:
    text = TEXTS[script]
    tokenizer = train_tokenizer([text], TokenizerConfig())
    names = [name for name in tokenizer.tokens(tokenizer.encode(text)) if name != "␣"]
    assert max(sum(not unicodedata.combining(sign) for sign in name) for name in names) <= 2
    assert not any(unicodedata.category(name[0]) == "Mn" for name in names)


@pytest.mark.parametrize("kind", ["wordlevel", *KINDS])
def test_a_tokenizer_that_does_not_compose_keeps_the_form_of_the_text(kind: str) -> None:
    forms = [unicodedata.normalize(form, "l'acqua è più") for form in ("NFC", "NFD")]
    tokenizer = trained(kind, " ".join(forms), composes=False)
    reloaded = Tokenizer.from_json(tokenizer.to_json())
    composed, decomposed = map(reloaded.encode, forms)
    assert composed != decomposed
    assert [reloaded.decode(composed), reloaded.decode(decomposed)] == forms


def test_an_iterator_that_can_be_read_once_is_refused() -> None:
    with pytest.raises(TypeError, match="read twice"):
        train_tokenizer(iter(["a"]), TokenizerConfig())
