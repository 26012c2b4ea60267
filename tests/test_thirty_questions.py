"""Thirty questions: each has a section that answers it and an answer, and its numbers are those of the code."""

import math
import re
from pathlib import Path

import pytest
import sacrebleu
import torch

from transformer_cli.config import DecodingConfig, load_config
from transformer_cli.decoding.search.beam import length_penalties
from transformer_cli.model.loss import SmoothedLabels
from transformer_cli.training.optimizers import learning_rate

from .test_links import LINK, broken

pytestmark = pytest.mark.pages

PAGE = Path(__file__).parents[1] / "docs" / "thirty_questions.md"
TEXT = PAGE.read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^### (\d+)\. ([^\n]+)\n(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL)
ANSWER = re.compile(r"<details><summary>Answer</summary>\n\n(.+?)\n</details>", re.DOTALL)


def answer(number: int) -> str:
    """The folded answer of a question, in one line."""
    [found] = ANSWER.findall(QUESTIONS[number - 1][2])
    return " ".join(found.split())


def test_there_are_thirty_questions() -> None:
    assert [int(number) for number, _, _ in QUESTIONS] == list(range(1, 31))


def test_each_question_names_the_section_that_answers_it_and_has_a_folded_answer() -> None:
    for number, _, body in QUESTIONS:
        reading = body.split("<details>")[0]
        assert reading.strip().startswith("Read: "), number
        sections = LINK.findall(reading)
        assert sections, number
        assert all("#" in section for section in sections), number
        assert broken(reading, PAGE) == [], number
        assert len(ANSWER.findall(body)) == 1, number


def test_the_learning_rates_are_those_of_the_schedule() -> None:
    noam = load_config("wmt14-en-de-base.yaml").training
    rates = {step: learning_rate(step, noam, d_model=512) for step in (100, 4000, 16000)}
    told = answer(22)
    assert f"= {rates[100]:.7f}" in told
    assert f"4,000: {rates[4000]:.6f}" in told
    assert f"= {rates[16000]:.6f}" in told


def test_the_shares_of_label_smoothing_are_those_of_the_loss() -> None:
    told = answer(16)
    over_all = SmoothedLabels.of(5, 0, 0.1, "vocabulary")
    over_others = SmoothedLabels.of(5, 0, 0.1, "others")
    assert over_all.truth_weight == 0.9
    assert over_others.truth_weight + over_others.symbol_weight == pytest.approx(0.9)
    assert f"{over_all.symbol_weight:.2f} or {over_others.symbol_weight:.3f}" in told


def test_the_length_penalties_are_those_of_the_search() -> None:
    options = DecodingConfig(length_normalization="gnmt", length_penalty=0.6)
    divisors = length_penalties(10, options, torch.zeros((), dtype=torch.float64))
    five, ten = float(divisors[5]), float(divisors[10])
    assert f"divided by {five:.2f}, and one of 10 tokens by {ten:.2f}" in answer(23)
    assert f"less than {ten / five:.2f} times" in answer(23)


def test_the_perplexities_are_those_that_the_page_prints() -> None:
    page = (PAGE.parent / "the_transformer.md").read_text(encoding="utf-8")
    printed = r"smoothed (\S+)\nwithout  \S+, perplexity (\S+)\nwrong perplexity, from the smoothed loss: (\S+)"
    [(smoothed, perplexity, wrong)] = re.findall(printed, page)
    told = f"smoothed loss is {smoothed}, whose exponential is {wrong}, while the perplexity is {perplexity}"
    assert told in answer(17)
    assert math.isclose(math.exp(float(smoothed)), float(wrong), rel_tol=0.01)


def test_the_figures_of_bleu_are_those_of_sacrebleu() -> None:
    judging = (PAGE.parent / "judging.md").read_text(encoding="utf-8")
    red = "The red cars are in front of the station."
    written = ["Good morning, where is the station ?", red]
    meant = [["Good morning, where is the station?", red]]
    cut = sacrebleu.corpus_bleu(written, meant, tokenize="13a")
    uncut = sacrebleu.corpus_bleu(written, meant, tokenize="none")
    assert round(cut.score, 1) == 100
    assert f"100 to {uncut.score:.1f}" in answer(19)
    assert f"it is {uncut.score:.1f}" in judging
    repeated = sacrebleu.corpus_bleu(["il il il gatto"], [["il gatto dorme qui"]])
    assert (repeated.counts[0], repeated.totals[0]) == (2, 4)
    assert f"= {math.exp(1 - 20 / 18):.3f}" in judging


def test_the_limits_of_16_bits_are_those_of_pytorch() -> None:
    short, half = torch.finfo(torch.bfloat16), torch.finfo(torch.float16)
    told = answer(28)
    assert f"{half.max:,.0f}" in told
    assert f"{half.smallest_normal:.1e}".replace("e-0", "e-") in told
    assert f"after 1 is {1 + short.eps:.4f}" in told
    assert torch.tensor(1.0, dtype=torch.bfloat16) + 0.001 == 1.0


def test_the_costs_of_a_layer_are_equal_where_the_page_says() -> None:
    def matrices(n: int, d: int) -> int:
        return 4 * n * d * d + 2 * n * d * 4 * d

    def attention(n: int, d: int) -> int:
        return 2 * n * n * d

    assert matrices(3072, 512) == attention(3072, 512)
    share = attention(30, 512) / (attention(30, 512) + matrices(30, 512))
    assert f"{share:.0%}" == "1%"
    assert "3,072 tokens" in answer(26)
    assert "1 % of the work" in answer(26)
