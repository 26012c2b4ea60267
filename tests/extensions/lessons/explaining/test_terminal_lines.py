"""What `tfm explain` prints: the translation first, then every part of the explanation."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tqdm.utils import disp_len, disp_trim

from transformer_cli.extensions.lessons.explaining import terminal_lines
from transformer_cli.extensions.lessons.explaining.attention_pictures import draw_slide, png_of
from transformer_cli.extensions.lessons.explaining.explainer import Explainer
from transformer_cli.extensions.lessons.explaining.explanation import LineExplanation
from transformer_cli.extensions.lessons.explaining.terminal_lines import (
    Paint,
    bar,
    block,
    explanation_lines,
    names_downwards,
    padded,
    step_lines,
)

from ....decoding.small_translators import tokenizer_of_words, translator
from .varied_translators import varied_model

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def explanation(line: str = "uno due. tre quattro", num_best: int = 3, **model: object) -> LineExplanation:
    tokenizer = tokenizer_of_words()
    of_model = translator(tokenizer, model=varied_model(tokenizer, **model), max_length=9)
    return Explainer.of(of_model).explain(line, num_best=num_best)


def printed(explained: LineExplanation, width: int = 110, *, has_colors: bool = False) -> list[str]:
    return list(explanation_lines(explained, Paint(has_colors), width))


def test_the_first_line_is_the_translation() -> None:
    explained = explanation()
    assert printed(explained)[0] == explained.translation


def test_every_part_is_printed_once_for_each_sentence() -> None:
    explained = explanation("Uno due. Tre quattro!")
    assert len(explained.sentences) == 2
    text = "\n".join(printed(explained))
    for title in (
        "1. pieces",
        "2. positions",
        "3. masks",
        "4. shapes",
        "5. attention",
        "6. decoding",
        "7. hypo",
    ):
        assert text.count(f"\n{title}") == 2, title


def test_a_hypothesis_that_is_too_wide_shows_its_end() -> None:
    explained = explanation("uno due tre")
    [sentence] = explained.sentences
    nodes = tuple(replace(node, piece=f"{'字' * 8}{node.step}") for node in sentence.beam.nodes)
    wide = replace(sentence, beam=replace(sentence.beam, nodes=nodes))
    rows = [row for row in step_lines(explained, wide, Paint(False), 60) if row.startswith("      * ")]
    assert [row[-1] for row in rows] == [str(step) for step in range(1, len(rows) + 1)]
    assert all(disp_len(row) <= 60 for row in rows)


def test_each_step_shows_five_probable_tokens_and_the_beam() -> None:
    explained = explanation("uno due tre")
    [sentence] = explained.sentences
    text = "\n".join(printed(explained))
    steps = re.split(r"\n  step \d+", text.split("6. decoding")[1].split("7. hypotheses")[0])[1:]
    assert len(steps) == max(node.step for node in sentence.beam.nodes)
    for number, (shown, token) in enumerate(zip(steps, sentence.hypotheses[0].tokens, strict=False), 1):
        assert len(re.findall(r"^ +\d+\.\d% ", shown, re.MULTILINE)) in (5, 6)
        for other in token.alternatives:
            assert f"{other.probability:.1%}" in shown
        of_step = [node for node in sentence.beam.nodes if node.step == number]
        signs = {"*": "chosen", "+": "kept", "=": "finished"}
        for sign, state in signs.items():
            num_shown = len(re.findall(rf"^      {re.escape(sign)} ", shown, re.MULTILINE))
            assert num_shown == sum(node.state == state for node in of_step)


@pytest.mark.parametrize("num_best", [1, 3, 4])
def test_the_title_says_that_more_hypotheses_have_ended_than_are_shown(num_best: int) -> None:
    explained = explanation("uno due tre", num_best)
    [sentence] = explained.sentences
    num_ended = sum(one.piece == "[EOS]" and one.state in ("finished", "chosen") for one in sentence.beam.nodes)
    [title] = [line for line in printed(explained) if line.startswith("7. hypotheses")]
    says_so = title == f"7. hypotheses: the best {num_best} of {num_ended} that have ended; --n-best shows more"
    assert says_so is (num_best < num_ended and num_best < explained.search["beam_size"])


@pytest.mark.parametrize(("tied", "num_shared"), [("none", 0), ("target-output", 1)])
def test_a_table_that_embedding_and_output_share_is_named(tied: str, num_shared: int) -> None:
    shapes = [line for line in printed(explanation("uno due", tie_embeddings=tied)) if "embedding" in line]
    assert (
        sum(line.startswith("  output ") and "(embedding, which shares this table)" in line for line in shapes)
        == num_shared
    )
    assert sum(line.endswith("(embedding)") for line in shapes) == 2 - num_shared


def test_all_shapes_of_a_layer_are_printed_and_equal_layers_once() -> None:
    lines = printed(explanation("uno due", encoder_layers=3))
    text = "\n".join(lines)
    found = re.search(r"self_attention\.query +\S+ -> 1x(\d+)x(\d+), as heads 1x(\d+)x(\d+)x(\d+)", text)
    assert found is not None
    positions, width, heads, positions_of_heads, head_width = map(int, found.groups())
    assert (positions_of_heads, heads * head_width) == (positions, width)
    assert "encoder.layers.1: the same shapes as the layer before it" in text
    assert "encoder.layers.2: the same shapes as the layer before it" in text
    assert "decoder.layers.1: the same shapes" in text


@pytest.mark.parametrize("width", [16, 64, 128, 160])
def test_the_picture_of_the_positions_shows_sines_alone(width: int) -> None:
    """With each third number of 128, sines and cosines stood in turn, and no wave could be seen."""
    lines = printed(explanation("uno due tre", d_model=width))
    place = lines.index("2. positions: sinusoidal")
    [first, *_] = [line.split()[1] for line in lines[place + 2 : place + 5]]
    shown = 1 if width <= 48 else 2 * -(-width // 96)
    assert len(first) == width // shown
    assert len({*first[:: 2 if shown == 1 else 1]}) == 1, "at the first position all sines are 0"


def test_without_positions_that_is_said() -> None:
    assert "gets no positions" in "\n".join(printed(explanation(positions="none")))


def test_lines_fit_into_a_narrow_terminal_where_pictures_can_be_broken() -> None:
    lines = printed(explanation("uno due tre quattro cinque", encoder_layers=6), width=60)
    start = next(i for i, line in enumerate(lines) if line.startswith("5. attention"))
    end = next(i for i, line in enumerate(lines) if line.startswith("6. decoding"))
    pictures = [line for line in lines[start:end] if line.startswith("    ")]
    assert max(map(len, pictures)) <= 60
    assert sum(line.count("layer 5") for line in pictures) >= 1


@pytest.mark.long
def test_colors_change_nothing_but_colors() -> None:
    explained = explanation()
    plain, colored = printed(explained), printed(explained, has_colors=True)
    assert [ANSI.sub("", line) for line in colored] == plain
    assert any(ANSI.search(line) for line in colored)
    assert not any(ANSI.search(line) for line in plain)


def test_colors_are_for_terminals_without_no_color() -> None:
    assert Paint.of(Terminal(), {}).has_colors
    assert not Paint.of(io.StringIO(), {}).has_colors
    assert not Paint.of(Terminal(), {"NO_COLOR": "1"}).has_colors
    assert Paint.of(Terminal(), {"NO_COLOR": ""}).has_colors
    assert not Paint.of(Terminal(), {"TERM": "dumb"}).has_colors


def test_control_characters_of_a_text_become_codes() -> None:
    text = "\n".join(printed(explanation("uno \u202e\u2066 due")))
    assert not re.search("[\x1b\u202e\u2066]", text)


def test_blocks_grow_with_the_number() -> None:
    shown = [block(share / 100) for share in range(101)]
    assert shown[0] == " "
    assert shown[-1] == "█"
    order = " ·░▒▓█"
    assert [order.index(one) for one in shown] == sorted(order.index(one) for one in shown)
    assert set(shown) == set(order)
    assert bar(0.5, 10) == "█████     "


def test_names_of_columns_are_written_downwards() -> None:
    assert names_downwards(["the", " car", "s"]) == ["tcs", "ha ", "er "]
    assert names_downwards(["station"]) == list("stati")
    assert names_downwards([]) == []


@pytest.mark.parametrize("name", ["你", "a\u0301", "a\u200bb"])
def test_a_name_that_is_not_one_column_wide_becomes_its_number(name: str) -> None:
    assert names_downwards(["ab", name]) == ["a1", "b "]


def test_each_picture_of_attention_names_its_columns() -> None:
    explained = explanation("uno due tre")
    [sentence] = explained.sentences
    named = names_downwards([token.piece for token in sentence.source.tokens])
    lines = printed(explained)
    title = lines.index("  cross-attention, by the token that it predicts")
    num_pictures = lines[title + 1].count("layer")
    below = lines[title + 2 : title + 2 + len(named)]
    assert [line.split() for line in below] == [(line * num_pictures).split() for line in named] or [
        line.count(name.strip()) for line, name in zip(below, named, strict=True)
    ] == [num_pictures] * len(named)


def test_padding_counts_columns() -> None:
    assert padded("ab", 4) == "ab  "
    assert padded("你好", 6) == "你好  "
    assert padded("abcdef", 4) == "abc…"


@pytest.mark.long
@pytest.mark.parametrize("line", ["uno due", "uno $due$ 你好 tre " * 3])
def test_a_slide_is_a_png_of_sixteen_to_nine(line: str) -> None:
    figure = draw_slide(explanation(line, max_length=40))
    png = png_of(figure)
    assert png.startswith(b"\x89PNG")
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (1920, 1080)


def test_no_more_of_a_long_text_is_measured_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step measured the whole of each hypothesis: with 600 words that took more time than all else."""
    explained = explanation(" ".join(["uno due tre quattro"] * 4))
    lengths = []
    monkeypatch.setattr(terminal_lines, "disp_len", lambda text: lengths.append(len(text)) or disp_len(text))
    for sentence in explained.sentences:
        assert list(step_lines(explained, sentence, Paint(False), 1))
    assert max(lengths) <= terminal_lines._LEAST_ROOM


@given(st.text(st.sampled_from("ab \u6f22\u5b57"), max_size=12), st.integers(2, 8))
def test_the_end_of_a_text_is_cut_to_its_columns(text: str, room: int) -> None:
    whole = text if disp_len(text) <= room else f"\u2026{disp_trim(text[::-1], room - 1)[::-1]}"
    assert terminal_lines._end_of(text, room) == whole
    assert disp_len(whole) <= room
