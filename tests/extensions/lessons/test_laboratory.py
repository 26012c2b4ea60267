"""The laboratory: configs of the variants, trainings that variants share, parts that are replaced, and runs that no other command finds."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from transformer_cli.acceleration import accelerate
from transformer_cli.checkpoint.trained_files import find_run
from transformer_cli.config import DecodingConfig, ModelConfig
from transformer_cli.decoding.engine import Request
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.extensions.lessons.ablations import (
    ABLATIONS,
    Ablation,
    Variant,
    ablation_named,
)
from transformer_cli.extensions.lessons.laboratory import (
    MEASURES,
    REPLACEMENTS,
    VariantOutcome,
    configs_of,
    curves_picture,
    remove_replaced,
    replaced,
    try_variants,
)
from transformer_cli.model.layers import EncoderLayer, MultiHeadAttention
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.errors import ConfigError, MissingInputError, UsageError
from transformer_cli.storage import read_json_lines

from ...decoding.small_translators import tokenizer_of_words, translator

pytestmark = pytest.mark.long

TWO_STEPS = (
    "training.max_steps=2",
    "training.log_every=1",
    "data.num_pairs=200",
    "validation.max_sentences=4",
    "validation.sequence_lengths=[5]",
)
WHOLE = pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda one: one.name)


@WHOLE
def test_each_ablation_has_valid_configs_that_differ(ablation: Ablation) -> None:
    configs = configs_of(ablation)
    trained = {
        (config.model_dump_json(), v.replaced, v.decoding) for config, v in zip(configs, ablation.variants, strict=True)
    }
    assert len(trained) == len(ablation.variants)
    assert all(config.runtime.threads == 1 for config in configs)


@WHOLE
def test_each_ablation_names_known_measures_and_parts(ablation: Ablation) -> None:
    assert set(ablation.measures) <= set(MEASURES)
    assert {one.replaced for one in ablation.variants} - {None} <= set(REPLACEMENTS)


@WHOLE
def test_each_ablation_asks_a_question_with_one_right_answer(ablation: Ablation) -> None:
    assert 2 <= len(set(ablation.options)) == len(ablation.options)
    assert 1 <= ablation.right <= len(ablation.options)
    texts = ablation.subject, ablation.question, ablation.came_out, ablation.why, ablation.read_on
    assert all(texts)
    assert ablation.question.endswith("?")


def test_ablations_have_different_names() -> None:
    assert len({one.name for one in ABLATIONS}) == len(ABLATIONS) >= 10


def test_an_unknown_ablation_is_refused_with_a_similar_name() -> None:
    with pytest.raises(UsageError, match="did you mean no-positions"):
        ablation_named("no-position")


def test_an_override_holds_for_all_variants_but_not_against_them() -> None:
    configs = configs_of(ablation_named("no-positions"), ["seed=7", "model.positions=learned"])
    assert [config.seed for config in configs] == [7, 7]
    assert [config.model.positions for config in configs] == ["learned", "none"]


def test_a_wrong_override_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"did you mean training\.max_steps"):
        configs_of(ablation_named("no-positions"), ["training.max_step=7"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[VariantOutcome]]:
    """A folder with ablations/no-positions, whose trainings are finished, and what came out."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        ablation = ablation_named("no-positions")
        return folder, try_variants(ablation, Path("ablations/no-positions"), TWO_STEPS)


@pytest.mark.heavy
def test_the_runs_of_an_ablation_are_not_found_as_the_newest_run(
    finished: tuple[Path, list[VariantOutcome]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished[0])
    with pytest.raises(MissingInputError, match="no run under runs/"):
        find_run()
    assert find_run("ablations/no-positions/no-positions").is_dir()


@pytest.mark.heavy
def test_a_finished_training_is_measured_again_with_the_same_result(
    here: Path, finished: tuple[Path, list[VariantOutcome]]
) -> None:
    folder = Path("ablations/no-positions")
    there, first = finished
    shutil.copytree(there / folder, folder, symlinks=True)
    again = try_variants(ablation_named("no-positions"), folder, TWO_STEPS)
    assert [one.figures for one in again] == [one.figures for one in first]
    assert len(list(read_json_lines(folder / "with-positions/metrics.jsonl"))) == 3


@pytest.mark.heavy
def test_variants_that_differ_in_decoding_share_one_training(here: Path) -> None:
    search = Variant("greedy"), Variant("beam", decoding=("decoding.beam_size=4",))
    ablation = replace(ablation_named("no-label-smoothing"), variants=search)
    outcomes = try_variants(ablation, Path("x"), TWO_STEPS[:-1])
    assert len({one.folder for one in outcomes}) == ablation.num_trainings == 1
    assert len(outcomes) == len(ablation.variants) > 1


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["no-scaling", "no-residuals"])
def test_checkpoints_of_a_model_with_a_replaced_part_are_removed(name: str, here: Path) -> None:
    ablation = ablation_named(name)
    usual, changed = outcomes = try_variants(ablation, Path("x"), TWO_STEPS)
    assert remove_replaced(ablation, outcomes) == [changed.folder]
    assert find_run(str(usual.folder)) == usual.folder
    with pytest.raises(MissingInputError, match="no checkpoint yet"):
        find_run(str(changed.folder))


@pytest.mark.heavy
def test_another_seed_gives_other_figures(here: Path, finished: tuple[Path, list[VariantOutcome]]) -> None:
    ablation = ablation_named("no-positions")
    alone = replace(ablation, variants=ablation.variants[:1])
    [other] = try_variants(alone, Path("2"), [*TWO_STEPS, "seed=2"])
    assert configs_of(ablation)[0].seed != 2
    assert finished[1][0].figures["loss"] != other.figures["loss"]


@pytest.mark.heavy
def test_an_outcome_is_plain_json(finished: tuple[Path, list[VariantOutcome]]) -> None:
    outcome = finished[1][0]
    facts = json.loads(json.dumps(outcome.as_json()))
    assert facts["variant"] == "with positions"
    assert set(facts["figures"]) == set(ablation_named("no-positions").measures)


def test_a_figure_that_is_no_finite_number_is_no_error(tmp_path: Path) -> None:
    """A training with a wrong setting may end with NaN, and a perplexity may be infinite."""
    ablation = ablation_named("no-positions")
    (tmp_path / "metrics.jsonl").write_text('{"kind": "train", "step": 1, "loss": 2.5}\n')
    for value in (math.nan, math.inf):
        figures = dict.fromkeys(ablation.measures, value)
        outcomes = [VariantOutcome(one.label, tmp_path, figures, "", 0.0) for one in ablation.variants]
        assert set(outcomes[0].as_json()["figures"].values()) == {None}
        assert curves_picture(ablation, outcomes).startswith(b"\x89PNG")


CONFIG = ModelConfig(d_model=16, num_heads=2, d_ff=32, encoder_layers=2, decoder_layers=2, dropout=0.0)
SOURCE = torch.tensor([[3, 4, 5, 6]])
TARGET = torch.tensor([[1, 7, 8, 9]])


def model() -> Transformer:
    torch.manual_seed(1)
    return accelerate(Transformer(CONFIG, 12, 12), torch.device("cpu")).eval()  # as in a run


def logits(one: Transformer, source: Tensor = SOURCE, target: Tensor = TARGET) -> Tensor:
    found: Tensor = one(source, None, target).detach()
    return found


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_without_the_causal_mask_a_position_reads_later_tokens(training: bool) -> None:
    one, later = model(), TARGET.clone()
    later[0, -1] = 2
    with torch.set_grad_enabled(training):  # on a CPU, training has a kernel of its own
        assert torch.equal(logits(one)[:, :-1], logits(one, target=later)[:, :-1])
        with replaced("causal mask"):
            assert not torch.allclose(logits(one)[:, 0], logits(one, target=later)[:, 0])


def test_without_the_causal_mask_padding_of_the_source_stays_hidden() -> None:
    one, mask = model(), torch.tensor([[True, True, True, False]])
    other = SOURCE.clone()
    other[0, -1] = 2
    with replaced("causal mask"):
        torch.testing.assert_close(one(SOURCE, mask, TARGET), one(other, mask, TARGET))


def test_without_scaling_the_weights_are_the_softmax_of_plain_products() -> None:
    torch.manual_seed(1)
    attention, x = MultiHeadAttention(CONFIG), torch.randn(2, 5, 16)
    queries, keys = (part(x).unflatten(-1, (2, 8)).transpose(1, 2) for part in (attention.query, attention.key))
    with replaced("scaling"):
        found = attention.weights(x, x, None)
    torch.testing.assert_close(found, (queries @ keys.mT).softmax(-1))


def test_without_residual_connections_a_layer_is_its_sublayers_one_after_the_other() -> None:
    torch.manual_seed(1)
    with replaced("residual connections"):
        layer, x = EncoderLayer(CONFIG).eval(), torch.randn(2, 5, 16)
        found = layer(x, None)
    normed = layer.self_attention_norm(x)
    attended = layer.self_attention(normed, normed, None)
    torch.testing.assert_close(found, layer.feed_forward(layer.feed_forward_norm(attended)))


def test_without_cross_attention_the_source_changes_nothing() -> None:
    one, other = model(), SOURCE.flip(1)
    assert not torch.allclose(logits(one), logits(one, source=other))
    with replaced("cross-attention"):
        assert torch.equal(logits(one), logits(one, source=other))


def fail_without(part: str, before: Tensor) -> None:
    with replaced(part):
        assert not torch.allclose(logits(model()), before)
        raise KeyboardInterrupt


@pytest.mark.parametrize("part", REPLACEMENTS)
def test_a_replaced_part_comes_back_after_an_error(part: str) -> None:
    before = logits(model())
    with pytest.raises(KeyboardInterrupt):
        fail_without(part, before)
    assert torch.equal(logits(model()), before)


@pytest.mark.parametrize("part", REPLACEMENTS)
def test_a_search_computes_without_the_replaced_part_too(part: str) -> None:
    """The faster form of a search knows the usual parts alone: it scaled all scores, and a layer without residual connections was an error."""
    ids = tuple(SOURCE[0].tolist())
    with replaced(part):
        engine = translator(tokenizer_of_words(), model=model()).engine
        assert isinstance(engine, PyTorchEngine)
        [[best]] = engine.prepared().translate([Request(ids)], DecodingConfig(length_penalty=0.0, max_length=5))
        expected = -engine.negative_log_likelihood([ids], [best.ids], batch_tokens=100)
    if part != "causal mask":  # there, a search sees less than the target that is given
        assert best.score == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("part", REPLACEMENTS)
def test_a_replaced_part_changes_no_parameter(part: str) -> None:
    names = {name: value.shape for name, value in model().state_dict().items()}
    with replaced(part):
        assert {name: value.shape for name, value in model().state_dict().items()} == names
