import json
import random
import re
import subprocess
import sys
from typing import Any

import pytest

from transformer_cli.config import TokenizerConfig
from transformer_cli.process.errors import ConfigError, DataError
from transformer_cli.text import vocabulary
from transformer_cli.text.normalization import SPECIALS
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer
from transformer_cli.text.tokenizer_file import BYTE_TOKENS, TokenizerParts

TEXTS = [
    "L'acqua dell'isola è blu, e l'isola è bella.",
    "Il gatto beve l'acqua; bevo acqua (fredda) alle 10:30!",
    "She doesn't know John's well-known “friends”.",
]
KINDS = {
    "wordlevel": TokenizerConfig(),
    "bpe": TokenizerConfig(kind="bpe", vocab_size=300),
    "unigram": TokenizerConfig(kind="unigram", vocab_size=320),
}
SUBWORD_KINDS = [kind for kind in KINDS if kind != "wordlevel"]


@pytest.mark.long
def test_a_word_vocabulary_is_unlimited_unless_told() -> None:
    words = [f"parola{chr(97 + n // 676)}{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}" for n in range(9000)]
    assert train_tokenizer(words, TokenizerConfig()).vocab_size == len(SPECIALS) + 9000
    assert train_tokenizer(words, TokenizerConfig(vocab_size=100)).vocab_size == 100


def test_the_most_frequent_words_stay_and_ties_are_broken_by_spelling() -> None:
    tokenizer = train_tokenizer(["d c b a", "c"], TokenizerConfig(vocab_size=8))
    assert tokenizer.tokens(range(4, 8)) == ["c", "a", "b", "d"]


def test_a_vocabulary_of_less_than_half_of_what_was_asked_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    train_tokenizer(TEXTS, TokenizerConfig(kind="bpe", vocab_size=300))
    assert "vocab_size" not in caplog.text
    tokenizer = train_tokenizer(TEXTS, TokenizerConfig(kind="bpe", vocab_size=8000))
    assert "tokenizer.vocab_size is 8,000, but the training text gives" in caplog.text
    assert f"a vocabulary of {tokenizer.vocab_size:,} only" in caplog.text


def test_rare_words_stay_out() -> None:
    tokenizer = train_tokenizer(["due due uno", "due"], TokenizerConfig(min_frequency=2))
    assert tokenizer.tokens(range(4, tokenizer.vocab_size)) == ["due"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_texts_does_not_matter(kind: str) -> None:
    reversed_order = train_tokenizer(TEXTS[::-1], KINDS[kind])
    assert reversed_order.to_json() == train_tokenizer(TEXTS, KINDS[kind]).to_json()


@pytest.mark.process
@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_another_process_learns_the_same(kind: str) -> None:
    """Hash tables of the `tokenizers` library have another order in each process."""
    script = (
        "import json, sys\n"
        "from transformer_cli.config import TokenizerConfig\n"
        "from transformer_cli.text.tokenizer import train_tokenizer\n"
        "config, texts = json.loads(sys.argv[1])\n"
        "sys.stdout.write(train_tokenizer(texts, TokenizerConfig(**config)).to_json())\n"
    )
    arguments = json.dumps([KINDS[kind].model_dump(), TEXTS])
    command = [sys.executable, "-c", script, arguments]
    output = subprocess.run(command, check=True, capture_output=True).stdout.decode()
    assert output == train_tokenizer(TEXTS, KINDS[kind]).to_json()


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_frequent_words_become_one_piece(kind: str) -> None:
    texts = ["zwei junge sind hier"] * 100 + ["Freunde"] * 2
    tokenizer = train_tokenizer(texts, TokenizerConfig(kind=kind, vocab_size=300))
    assert tokenizer.tokens(tokenizer.encode("zwei junge sind hier")) == [
        "zwei",
        "junge",
        "sind",
        "hier",
    ]


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_a_vocabulary_without_room_for_all_bytes_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"tokenizer\.vocab_size \(259\) is below 260"):
        train_tokenizer(TEXTS, TokenizerConfig(kind=kind, vocab_size=259))


@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_is_not_larger_than_told(kind: str) -> None:
    tokenizer = train_tokenizer(TEXTS, TokenizerConfig(kind=kind, vocab_size=270))
    assert tokenizer.vocab_size <= 270


def test_an_empty_vocabulary_is_refused() -> None:
    with pytest.raises(DataError, match="empty vocabulary"):
        train_tokenizer(["uno due"], TokenizerConfig(min_frequency=2))
    with pytest.raises(DataError, match="empty vocabulary"):
        train_tokenizer([], TokenizerConfig())


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_no_subword_reaches_over_the_edge_of_a_word(kind: str) -> None:
    tokenizer = train_tokenizer(["abab. abab. abab, abab."] * 50, TokenizerConfig(kind=kind, vocab_size=300))
    for index in range(len(SPECIALS), tokenizer.vocab_size):
        name = tokenizer.tokens([index])[0]
        assert len(name) == 1 or name.isalpha() or re.fullmatch("(<0x[0-9A-F]{2}>)+", name), name


def test_a_byte_is_less_probable_than_any_learned_piece_of_a_unigram_tokenizer() -> None:
    texts = ["\u732b\u306f\u673a\u306e\u4e0a\u306b\u3044\u307e\u3059"] * 20
    model = train_tokenizer(texts, TokenizerConfig(kind="unigram", vocab_size=300)).parts.model
    scores = dict(model["vocab"])
    learned = [score for piece, score in scores.items() if piece not in (*SPECIALS, *BYTE_TOKENS)]
    assert learned
    assert max(scores[token] for token in BYTE_TOKENS) <= min(learned)
    assert max(learned) <= 0.0


KANA = "".join(chr(code) for code in range(0x3042, 0x3060))


def test_the_entries_of_unigram_are_chosen_among_twice_as_many_subwords_of_byte_pair_encoding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learn_scores, num_candidates = vocabulary.learn_scores, []

    def noted(texts: Any, candidates: TokenizerParts, vocab_size: int) -> TokenizerParts:
        num_candidates.append(len(candidates.model["vocab"]))
        return learn_scores(texts, candidates, vocab_size)

    monkeypatch.setattr(vocabulary, "learn_scores", noted)
    numbers = random.Random(1)
    texts = ["".join(numbers.choices(KANA, k=12)) for _ in range(300)]
    tokenizer = train_tokenizer(texts, TokenizerConfig(kind="unigram", vocab_size=350))
    assert num_candidates == [700]
    assert tokenizer.vocab_size == 350


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["wordlevel", "bpe", "unigram"])
def test_an_endless_word_is_no_entry_and_the_tokenizer_can_be_read_again(kind: str) -> None:
    """A file with such a long entry would be refused, and the run of the file with it."""
    texts = ["x" * 1_000_001, "uno due", "uno " + "y" * 3000 + " tre"]
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": 300})
    tokenizer = train_tokenizer(texts * 2, config)
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.vocab_size == tokenizer.vocab_size <= 300
    for text in (*texts, "uno tre"):
        assert again.encode(text) == tokenizer.encode(text)
    if kind == "wordlevel":
        assert tokenizer.encode("x" * 1_000_001) == [tokenizer.unk_id]
        assert tokenizer.tokens(tokenizer.encode("uno tre")) == ["uno", "tre"]
