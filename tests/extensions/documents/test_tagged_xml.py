"""XML as a text with tags: which elements divide sentences, which stay, and that all tags stay well-formed."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_cli.extensions.documents.segments import plain_text
from transformer_cli.extensions.documents.tagged_xml import TagRules, read_tagged_xml
from transformer_cli.process.errors import DataError

from .fake_translators import Identity, WordByWord, translate_document

AUTO = TagRules()
ALL_INLINE = TagRules(detects_outline=False)


def texts_of(text: str, rules: TagRules = AUTO) -> list[str]:
    return [plain_text(each.pieces) for each in read_tagged_xml(text, rules).segments]


def translated(text: str, rules: TagRules = AUTO) -> str:
    upper = WordByWord(str.upper, lambda words: list(reversed(range(len(words)))))
    return translate_document(read_tagged_xml(text, rules), upper).data.decode()


def test_elements_beside_text_are_part_of_the_sentence_and_others_divide_it() -> None:
    text = "<doc><title>A title</title><par>The <b>red</b> car</par><par><b>Bold</b></par></doc>"
    assert texts_of(text) == ["A title", "The red car", "Bold"]


def test_without_outline_detection_only_splitting_tags_divide() -> None:
    text = "<a>one</a><b>two</b><br/>three"
    assert texts_of(text, ALL_INLINE) == ["onetwothree"]
    rules = TagRules(splitting=frozenset(["br"]), detects_outline=False)
    assert texts_of(text, rules) == ["onetwo", "three"]


def test_non_splitting_tags_never_divide_and_splitting_tags_always_do() -> None:
    text = "<doc><x>one</x><x>two</x></doc>"
    assert texts_of(text) == ["one", "two"]
    assert texts_of(text, TagRules(non_splitting=frozenset(["x"]))) == ["onetwo"]
    beside = "one <x>two</x> three"
    assert texts_of(beside) == ["one two three"]
    assert texts_of(beside, TagRules(splitting=frozenset(["x"]))) == ["one ", "two", " three"]


def test_tags_move_with_their_words_and_ignored_content_stays() -> None:
    assert translated("the <b>red</b> car") == "CAR <b>RED</b> THE"
    rules = TagRules(ignored=frozenset(["keep"]))
    assert "<keep>as <keep>it</keep> is</keep>" in translated("go to <keep>as <keep>it</keep> is</keep> now", rules)
    assert translated("<doc><keep>as it is</keep></doc>", rules) == "<doc><keep>as it is</keep></doc>"


def test_references_are_text_and_everything_else_stays() -> None:
    text = '<?xml version="1.0"?>\n<doc n="a &lt; b"><!-- note --><p>you &amp; me</p><![CDATA[x]]></doc>'
    assert translated(text) == text.replace("you &amp; me", "ME &amp; YOU")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a>one", "no well-formed XML"),
        ("one</a>", "no well-formed XML"),
        ("<a>one</b>", "no well-formed XML"),
        ("a < b & c", "no well-formed XML"),
        ('<?xml version="1.0"?><!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "declares an entity e"),
        ("<a>" * 300 + "x" + "</a>" * 300, "nested"),
    ],
)
def test_broken_and_harmful_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_tagged_xml(text, AUTO)


NAMES = st.sampled_from(["a", "b", "c"])
FRAGMENTS = st.recursive(
    st.sampled_from(["one", " two three ", "", "<c/>", "&amp;"]),
    lambda inner: st.builds(
        lambda name, parts: f"<{name}>{''.join(parts)}</{name}>", NAMES, st.lists(inner, max_size=3)
    ),
    max_leaves=8,
)
SETS = st.frozensets(NAMES, max_size=2)


@pytest.mark.long
@given(
    st.lists(FRAGMENTS, max_size=3).map("".join),
    st.builds(TagRules, SETS, SETS, SETS, st.booleans()),
)
def test_every_translation_is_well_formed_and_has_the_same_elements(text: str, rules: TagRules) -> None:
    def elements(fragment: str) -> list[str]:
        return sorted(each.tag for each in ElementTree.fromstring(f"<_>{fragment}</_>").iter())

    assert elements(translated(text, rules)) == elements(text)
    unchanged = translate_document(read_tagged_xml(text, rules), Identity()).data.decode()
    assert unchanged == text
