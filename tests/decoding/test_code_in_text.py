"""Code in lines: a promise holds commands, smileys and codes of colours as it holds other protected spans."""

import pytest

from transformer_cli.decoding.protected_spans import Promise, spans_outside_terms
from transformer_cli.text.spans import SpanKind, find_spans, span_texts, with_code


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("Use tar -czstd or foo(bar, baz) now", ["tar -czstd", "foo(bar, baz)"]),
        ("We love dogs :-)", [":-)"]),
        ("&6Type &c/help&6 for 12 dogs", ["&6", "&c", "/help", "&6", "12"]),
        ("Set place_type=continent in `a b`", ["place_type=continent", "`a b`"]),
        ("The dog(s) and the cat", []),
    ],
)
def test_code_is_found_beside_other_spans(text: str, spans: list[str]) -> None:
    assert span_texts(text, with_code(text, find_spans(text))) == spans
    assert span_texts(text, spans_outside_terms(text, ())) == spans


def test_smileys_and_codes_of_colours_stand_between_words() -> None:
    text = "&aThe dogs &7are here :) with tar -xzf"
    kinds = [span.kind for span in with_code(text, find_spans(text))]
    assert kinds == [SpanKind.TAG, SpanKind.TAG, SpanKind.TAG, SpanKind.WORD]


def test_a_promise_holds_code_as_often_as_its_source() -> None:
    text = "Use tar -xzf for place_type=continent :-)"
    promise = Promise.of(text, with_code(text, find_spans(text)))
    assert promise.is_kept_by("Utilise tar -xzf pour place_type=continent :-)")
    assert not promise.is_kept_by("Utilise goudron pour place_type=continent :-)")
    assert not promise.is_kept_by("Utilise tar -xzf pour place_type=continente :-)")
    assert not promise.is_kept_by("Utilise tar -xzf pour place_type=continent")
    plain = Promise.of("The dogs sleep", [])
    assert plain.is_kept_by("Les chiens dorment :-)")
