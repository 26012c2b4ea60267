"""The tokenizer: text to token ids, and token ids to text."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property

from transformer_cli.config import TokenizerConfig
from transformer_cli.errors import DataError, TfmError, TryAgainError, is_out_of_memory
from transformer_cli.text import tokenizer_file
from transformer_cli.text.byte_pieces import BytePieces
from transformer_cli.text.tokenizer_layout import BYTE_TOKENS
from transformer_cli.text.vocabulary import learn_model
from transformer_cli.text.word_split import SPECIALS, UNK, can_be_encoded_alone

MAX_CACHED_WORDS = 500_000
MAX_CACHED_CHARACTERS = 40
# A text with more characters per token of `max_length` than this counts as too long and is not encoded.
MAX_CHARACTERS_PER_TOKEN = 64


class Tokenizer:
    """A tokenizer with the vocabulary of one language, or a vocabulary shared by both."""

    unk_id, pad_id, sos_id, eos_id = range(len(SPECIALS))

    def __init__(self, parts: tokenizer_file.TokenizerParts) -> None:
        """Build a tokenizer from the parts of a tokenizer.json, which were checked before."""
        self._parts = parts
        self._engine = tokenizer_file.build(parts)
        self.vocab_size: int = self._engine.get_vocab_size()
        self._pieces = [self._engine.id_to_token(i) or "" for i in range(self.vocab_size)]
        # [UNK] is shown with a space before it: most unknown tokens are words.
        self._shown = ["" if piece in SPECIALS else piece for piece in self._pieces]
        self._shown[self.unk_id] = f" {UNK}"
        is_of_words = parts.layout.kind == "WordLevel"
        self._is_word = [is_of_words and any(map(str.isalnum, piece)) for piece in self._pieces]
        self._is_word[: len(SPECIALS)] = [False] * len(SPECIALS)
        self._first_words = _WordCache(self._encode_whole)
        self._later_words = _WordCache(self._encode_later_word)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special tokens; the string `[EOS]` in a text is ordinary text."""
        # The ids of words are cached; joined, they are the ids that `_encode_whole` gives.
        first, *others = text.split(" ")
        known = self._later_words
        try:
            ids = self._first_words[first].copy()
            for word in others:
                ids += known[word]
        except KeyError:
            return self._encode_whole(text)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; [PAD], [SOS] and [EOS] are left out, [UNK] is shown."""
        shown = self._shown
        return self._engine.decoder.decode([shown[index] for index in ids])

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """A short readable name of each token, for pictures and samples."""
        return [self._name(index) for index in ids]

    def count_words(self, ids: Iterable[int]) -> int:
        """How many of these ids are known words, not punctuation; 0 for a tokenizer of subwords."""
        return sum(map(self._is_word.__getitem__, ids))

    def unknown_words(self, text: str) -> list[str]:
        """The words and marks of a text that have no entry in the vocabulary, in order."""
        normalizer, splitter = self._engine.normalizer, self._engine.pre_tokenizer
        assert normalizer is not None
        assert splitter is not None
        pieces = splitter.pre_tokenize_str(normalizer.normalize_str(_without_surrogates(text)))
        words = (piece.strip() for piece, _ in pieces if self._engine.token_to_id(piece) is None)
        return [word for word in words if word]

    @cached_property
    def byte_pieces(self) -> BytePieces | None:
        """Which token may follow which, so that no character is broken; None if every token may follow every other."""
        if self._parts.layout.kind == "WordLevel":
            return None
        return BytePieces.of([self._parts.layout.bytes_of(piece) for piece in self._pieces])

    def to_json(self) -> str:
        """The content of a tokenizer.json, which the `tokenizers` library can load as well."""
        return tokenizer_file.write(self._parts)

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """A tokenizer from the content of a tokenizer.json, trusted or not.

        Raises:
            DataError: `to_json` cannot have written this content.
        """
        with tokenizer_errors_explained("the tokenizer cannot be built"):
            return cls(tokenizer_file.read(text))

    def _encode_whole(self, text: str) -> list[int]:
        text = _without_surrogates(text)
        return self._engine.encode_batch_fast([text], add_special_tokens=False)[0].ids

    def _encode_later_word(self, word: str) -> list[int]:
        return self._encode_whole(f"a {word}")[len(self._first_words["a"]) :]

    def _name(self, index: int) -> str:
        if index < len(SPECIALS):
            return SPECIALS[index]
        if self._pieces[index] in BYTE_TOKENS:
            return self._pieces[index]
        text: str = self._engine.decoder.decode([" ", self._pieces[index]])
        return text.strip(" ") or "␣"


def _without_surrogates(text: str) -> str:
    """UTF-8 has no lone surrogates: each becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


class _WordCache(dict[str, list[int]]):
    """A cache from words to ids; KeyError for a word that must be encoded together with its text."""

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        super().__init__()
        self._encode = encode

    def __missing__(self, word: str) -> list[int]:
        if not 0 < len(word) <= MAX_CACHED_CHARACTERS or not can_be_encoded_alone(word):
            raise KeyError(word)
        if len(self) >= MAX_CACHED_WORDS:
            self.clear()
        ids = self[word] = self._encode(word)
        return ids


def train_tokenizer(
    texts: Iterable[str], config: TokenizerConfig, *, composes: bool = True
) -> Tokenizer:
    """A tokenizer whose vocabulary is learned from texts; the same texts give the same tokenizer.

    Args:
        texts: lines of the training split; of both languages if the vocabulary is shared. They are read
            twice, so an iterator is refused.
        config: the kind of tokenizer, and the limits of its vocabulary.
        composes: whether the tokenizer converts text to the Unicode normal form NFC.

    Raises:
        ConfigError: `vocab_size` is too small for this kind of tokenizer.
        DataError: the texts give an empty vocabulary.
    """
    with tokenizer_errors_explained("no vocabulary can be learned from this text"):
        tokenizer = Tokenizer(learn_model(texts, config, composes=composes))
    if tokenizer.vocab_size <= len(SPECIALS):
        raise DataError(
            "the training text gives an empty vocabulary",
            hint="check the corpus, and tokenizer.min_frequency against the size of the corpus",
        )
    return tokenizer


@contextmanager
def tokenizer_errors_explained(what: str) -> Iterator[None]:
    """Turn errors of the `tokenizers` library into `TfmError`; its Rust panics are no `Exception`."""
    try:
        yield
    except TfmError:
        raise
    except BaseException as error:
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        if is_out_of_memory(error):
            raise TryAgainError(f"{what}: out of memory", hint="close other programs") from error
        raise DataError(f"{what}: {error}") from error
