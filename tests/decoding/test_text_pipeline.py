"""The text pipeline alone: there and back, without a model."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.config import (
    DataConfig,
    FilesData,
    PhrasebookData,
    SequencesData,
    TokenizerConfig,
)
from transformer_cli.decoding import (
    Alternative,
    Hypothesis,
    Request,
    TextPipeline,
    Translation,
    UnknownWords,
)
from transformer_cli.decoding.checks.doubts import MADE_UP
from transformer_cli.decoding.glossary import AppliedTerm
from transformer_cli.decoding.text_pipeline import KnownSpellings
from transformer_cli.decoding.translation import TranslatedPiece
from transformer_cli.text.seen_words import SeenWords
from transformer_cli.text.tokenizer import train_tokenizer

from .small_translators import WORDS, tokenizer_of_words
from .stub_translators import cut_after, stub_translator

SOURCE = tokenizer_of_words()
TARGET = train_tokenizer(["one two three four\u2028five"], TokenizerConfig())
WITHOUT_END = SequencesData(source="sequences", end_symbol=False)


def pipeline(data: DataConfig | None = None, max_length: int = 12) -> TextPipeline:
    return TextPipeline(SOURCE, TARGET, data or PhrasebookData(), max_length)


def hypothesis(text: str, score: float) -> Hypothesis:
    return Hypothesis((*TARGET.encode(text), TARGET.eos_id), score)


def test_a_line_becomes_one_part_that_ends_with_the_end_symbol() -> None:
    prepared = pipeline().prepare("uno due\r\n")
    assert prepared.text == "uno due\r\n"
    assert prepared.requests == [Request((*SOURCE.encode("uno due"), SOURCE.eos_id))]


def test_without_an_end_symbol_there_is_none() -> None:
    of_task = pipeline(WITHOUT_END)
    assert of_task.prepare("uno due").requests == [Request(tuple(SOURCE.encode("uno due")))]
    assert of_task.target_ids("one two") == tuple(TARGET.encode("one two"))


@pytest.mark.parametrize("line", ["", "  \n", "\u200b", "\x00"])
def test_a_blank_line_has_no_parts_and_comes_back_empty(line: str) -> None:
    prepared = pipeline().prepare(line)
    assert prepared.parts == ()
    assert pipeline().restore(prepared, []) == Translation(line, "", 0.0, ())


@given(
    words=st.lists(st.sampled_from([*WORDS, "ignoto", "x" * 300]), min_size=1, max_size=60),
    max_length=st.integers(2, 12),
)
def test_parts_are_short_and_together_hold_all_words(words: list[str], max_length: int) -> None:
    parts = pipeline(max_length=max_length).prepare(" ".join(words)).requests
    assert all(1 < len(part.ids) <= max_length for part in parts)
    assert all(part.ids[-1] == SOURCE.eos_id for part in parts)
    known = [index for part in parts for index in part.ids[:-1] if index != SOURCE.unk_id]
    assert known == [index for word in words if word in WORDS for index in SOURCE.encode(word)]


def test_parts_are_joined_by_spaces_and_their_scores_added() -> None:
    short = pipeline(max_length=4)
    prepared = short.prepare("uno due tre quattro")
    assert len(prepared.parts) == 2
    found = short.restore(
        prepared,
        [
            [hypothesis("one", -1.0), hypothesis("two", -2.0), hypothesis("", -3.0)],
            [hypothesis("three", -0.5), hypothesis("", -0.75)],
        ],
    )
    best = Alternative("one three", -1.5)
    pieces = (TranslatedPiece("uno due", "one"), TranslatedPiece("tre quattro", "three"))
    assert found == Translation(
        prepared.text,
        *best,
        (best, Alternative("two", -2.75), Alternative("", -3.75)),
        num_words=4,
        is_cut=True,
        pieces=pieces,
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Donaudampf, perch\u00e9 wolf.", ()),
        (
            "donau\u00addampf wo\u200blf perche\u0301 \ufb01n",
            ("\ufb01n",),
        ),  # as in training, without NFKC
        ("DONAUDAMPF PERCH\u00c9", ()),
        ("PERCHE\u0301 ku\u200ba", ("kua",)),
    ],
)
def test_words_are_compared_as_the_model_reads_them(source: str, expected: tuple[str, ...]) -> None:
    seen = SeenWords.of(dict.fromkeys(["donaudampf", "perch\u00e9", "wolf"], 1))
    knowing = replace(pipeline(), seen_words=seen)
    assert knowing.unseen_words(Translation(source, "", 0.0, ())) == expected


def test_a_word_that_is_read_in_a_known_spelling_has_been_seen() -> None:
    seen = SeenWords.of(dict.fromkeys(["uno", "perch\u00e9"], 1))
    spellings = KnownSpellings(train_tokenizer(["uno perch\u00e9"] * 2, TokenizerConfig()))
    knowing = replace(pipeline(), seen_words=seen, spellings=spellings)
    assert knowing.unseen_words(Translation("uno perche due", "", 0.0, ())) == ("due",)


def test_words_that_the_model_makes_up_are_named_but_not_those_of_a_term_or_a_memory() -> None:
    seen = replace(SeenWords.of({"uno": 1}), written=SeenWords.of({"wolf": 1}))
    knowing = replace(pipeline(), seen_words=seen)
    translation = Translation("uno", "wolf hallations", 0.0, ())
    translator = replace(stub_translator(cut_after()), pipeline=knowing)
    assert translator.with_doubts_of_line(translation).doubts == (f"{MADE_UP}: hallations",)
    term = AppliedTerm("uno", "hallations", is_applied=True)
    for each in (replace(translation, terms=(term,)), replace(translation, is_from_memory=True)):
        assert translator.with_doubts_of_line(each).doubts == ()
    others = replace(translator, pipeline=replace(pipeline(), seen_words=SeenWords.of({"uno": 1})))
    assert others.with_doubts_of_line(translation).doubts == ()


def test_equal_texts_become_one_alternative_and_line_breaks_become_spaces() -> None:
    prepared = pipeline().prepare("uno")
    twice, other = hypothesis("four\u2028five", -1.0), hypothesis("one", -2.0)
    found = pipeline().restore(prepared, [[twice, other, twice._replace(score=-3.0)]])
    assert found.alternatives == (("four five", -1.0), ("one", -2.0))


def test_no_hypothesis_is_an_empty_line() -> None:
    prepared = pipeline(WITHOUT_END).prepare("uno")
    assert pipeline(WITHOUT_END).restore(prepared, [[]]).text == ""


def sentences_of(data: DataConfig | None = None, max_length: int = 12) -> TextPipeline:
    return TextPipeline(SOURCE, TARGET, data or PhrasebookData(), max_length, splits_sentences=True)


def data_of(source: str, target: str) -> FilesData:
    corpus = {"source_path": "a", "target_path": "b"}
    languages = {"source_language": source, "target_language": target}
    return FilesData.model_validate({"source": "files", "corpora": [corpus], **languages})


def restored(of: TextPipeline, line: str, *texts: str) -> str:
    prepared = of.prepare(line)
    return of.restore(prepared, [[hypothesis(text, -1.0)] for text in texts]).text


def test_each_sentence_is_a_part_and_not_cut() -> None:
    prepared = sentences_of().prepare("uno due. Tre? ")
    assert [SOURCE.decode(one.ids[:-1]) for one in prepared.requests] == [
        "uno due [UNK]",
        "[UNK] [UNK]",  # without the space at the end
    ]
    assert [part.gap for part in prepared.parts] == ["", " "]
    assert not prepared.is_cut


def test_the_white_space_between_sentences_comes_back() -> None:
    assert restored(sentences_of(), "Uno.  Due.", "one", "two") == "one  two"
    assert restored(sentences_of(), "Uno.\u2028Due.", "one", "two") == "one two"
    assert restored(sentences_of(), "Uno. Due. Tre.", "one", "", "two") == "one two"


def test_nothing_stands_between_sentences_of_a_language_without_spaces() -> None:
    assert restored(sentences_of(data_of("it", "ja")), "Uno. Due.", "one", "two") == "onetwo"
    assert restored(sentences_of(data_of("zh", "en")), "你好。我饿了\uff01", "one", "two") == "one two"


def test_a_long_sentence_is_cut_beside_a_short_one() -> None:
    prepared = sentences_of(max_length=4).prepare("Uno. Due tre quattro cinque.")
    assert prepared.is_cut
    assert len(prepared.parts) > 2


def test_a_line_knows_its_unknown_words_and_the_number_of_its_words() -> None:
    prepared = pipeline().prepare("uno stampante due § Toner")
    assert prepared.unknown_words == ("stampante", "§", "Toner")
    assert prepared.num_words == 5
    translation = pipeline().restore(prepared, [[hypothesis("one", -1.0)]])
    assert translation.unknown_words == prepared.unknown_words
    assert translation.num_words == 5


def test_subwords_know_every_word() -> None:
    subwords = train_tokenizer([" ".join(WORDS)], TokenizerConfig(kind="bpe", vocab_size=300))
    prepared = TextPipeline(subwords, TARGET, PhrasebookData(), 50).prepare("uno stampante §")
    assert prepared.unknown_words == ()


def test_unknown_words_are_told_once_with_their_number_and_the_first_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unknown_words = UnknownWords()
    for line in ("uno due", "tre stampante", "toner uno"):
        prepared = pipeline().prepare(line)
        unknown_words.add(pipeline().restore(prepared, [[hypothesis("one", -1.0)]]))
    unknown_words.report()
    unknown_words.report()
    [message] = caplog.messages
    assert message.startswith("unknown words: 2 of 6 ")
    assert message.endswith("the first: stampante")


def test_an_unknown_word_is_shown_short_and_without_control_characters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unknown_words = UnknownWords()
    word = "\x1b[31m" + "x" * 100_000
    unknown_words.add(Translation(word, "", 0.0, (), (word,), 1))
    unknown_words.report()
    assert "\x1b" not in caplog.text
    assert len(caplog.messages[0]) < 200
