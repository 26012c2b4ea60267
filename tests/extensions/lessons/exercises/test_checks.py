"""The checks of the exercises: solutions pass, and each known mistake is named."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from transformer_cli.extensions.lessons.exercises.catalogue import (
    EXERCISES,
    Exercise,
    WrongAnswer,
    exercise_named,
)
from transformer_cli.extensions.lessons.exercises.learner_code import load_module
from transformer_cli.extensions.lessons.exercises.search_checks import (
    BEAM_CASES,
    BeamCase,
    BeamForm,
    best_by_brute_force,
    searched,
)

from .mutants import MUTANTS, Mutant

each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda one: one.name)


def check(exercise: str, source: str, folder: Path) -> None:
    path = folder / "answer.py"
    path.write_text(source, encoding="utf-8")
    module = load_module(path)
    try:
        exercise_named(exercise).load_check()(module)
    finally:
        del sys.modules[module.__name__]


@each_exercise
def test_the_solution_passes(exercise: Exercise, tmp_path: Path) -> None:
    check(exercise.name, exercise.solution_file.read_text(encoding="utf-8"), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.exercise}: {one.message}"[:70])
def test_a_mistake_is_named(mutant: Mutant, tmp_path: Path) -> None:
    with pytest.raises(WrongAnswer) as wrong:
        check(mutant.exercise, mutant.source, tmp_path)
    assert mutant.message in wrong.value.message
    assert wrong.value.message.startswith(exercise_named(mutant.exercise).functions)
    assert "\n" not in wrong.value.message


def test_every_exercise_has_at_least_three_mutants() -> None:
    numbers = Counter(mutant.exercise for mutant in MUTANTS)
    assert numbers.keys() == {exercise.name for exercise in EXERCISES}
    assert min(numbers.values()) >= 3


# Correct answers that look different from the reference solution.
OTHER_ANSWERS = {
    "causal_mask": "import torch\ndef causal_mask(n):\n    i = torch.arange(n)\n    return i[:, None] >= i\n",
    "scaled_attention": (
        "import torch\n"
        "def attention(q, k, v, mask):\n"
        "    bias = torch.zeros(mask.shape).masked_fill(~mask, -1e9)\n"
        "    return torch.softmax(torch.einsum('bhqk,bhck->bhqc', q, k) * q.shape[-1] ** -0.5 + bias, 3) @ v\n"
    ),
    "heads": (
        "def split_heads(x, num_heads):\n"
        "    b, t, d = x.shape\n"
        "    return x.view(b, t, num_heads, d // num_heads).permute(0, 2, 1, 3)\n"
        "def join_heads(heads):\n"
        "    b, h, t, k = heads.shape\n"
        "    return heads.permute(0, 2, 1, 3).reshape(b, t, h * k)\n"
    ),
    "sinusoids": (
        "import math, torch\n"
        "def sinusoids(n, d):\n"
        "    table = torch.zeros(n, d)\n"
        "    scale = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))\n"
        "    table[:, 0::2] = torch.sin(torch.arange(n)[:, None] * scale)\n"
        "    table[:, 1::2] = torch.cos(torch.arange(n)[:, None] * scale)\n"
        "    return table\n"
    ),
    "label_smoothing": (
        "from torch.nn.functional import cross_entropy\n"
        "def smoothed_loss(logits, ids, pad, epsilon):\n"
        "    return cross_entropy(logits.transpose(1, 2), ids, ignore_index=pad, label_smoothing=epsilon)\n"
    ),
    "warmup": (
        "def learning_rate(step, d_model, warmup_steps):\n"
        "    if step < warmup_steps:\n"
        "        return step / warmup_steps * (d_model * warmup_steps) ** -0.5\n"
        "    return (d_model * step) ** -0.5\n"
    ),
    "greedy_search": (
        "def greedy_search(model, bos, eos, max_length):\n"
        "    ids = [bos]\n"
        "    for _ in range(max_length):\n"
        "        ids.append(model(ids).max(0).indices.item())\n"
        "        if ids[-1] == eos:\n"
        "            return ids[1:-1]\n"
        "    return ids[1:]\n"
    ),
    "beam_search": (
        "import torch\n"
        "def beam_search(model, bos, eos, size, max_length, alpha):\n"
        "    beam, ended = [(0.0, [bos])], []\n"
        "    for length in range(1, max_length + 1):\n"
        "        totals = torch.stack([total + model(ids) for total, ids in beam]).flatten()\n"
        "        best, places = totals.topk(min(size, len(totals)))\n"
        "        num = len(totals) // len(beam)\n"
        "        new = [(t, [*beam[p // num][1], p % num]) for t, p in zip(best.tolist(), places.tolist())]\n"
        "        ended += [(t / ((5 + length) / 6) ** alpha, i[1:-1]) for t, i in new if i[-1] == eos]\n"
        "        beam = [one for one in new if one[1][-1] != eos]\n"
        "        if not beam:\n"
        "            break\n"
        "    return max(ended)[1] if ended else max(beam)[1][1:]\n"
    ),
    "bleu": (
        "from sacrebleu.metrics.bleu import BLEU\n"
        "def corpus_bleu(hypotheses, references):\n"
        "    texts, wanted = [' '.join(h) for h in hypotheses], [' '.join(r) for r in references]\n"
        "    bleu = BLEU(tokenize='none', smooth_method='none', force=True)\n"
        "    return bleu.corpus_score(texts, [wanted]).score\n"
    ),
}


@each_exercise
def test_a_right_answer_that_looks_different_passes(exercise: Exercise, tmp_path: Path) -> None:
    check(exercise.name, OTHER_ANSWERS[exercise.name], tmp_path)


def test_the_cases_of_beam_search_have_one_best_translation_for_both_right_forms() -> None:
    for case in BEAM_CASES:
        best = best_by_brute_force(case)
        assert searched(case, BeamForm()) == best
        assert searched(case, BeamForm(finished_take_slots=True)) == best


@pytest.mark.long
def test_the_reference_beam_search_is_brute_force_if_the_beam_is_wide() -> None:
    for seed in range(20):
        case = BeamCase(seed, 1000, 1.0)
        assert searched(case, BeamForm()) == best_by_brute_force(case)
