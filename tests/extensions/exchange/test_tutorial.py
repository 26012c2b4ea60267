"""The checkpoints of the tutorial by hkproj become runs that compute what its model computes."""

import math
import multiprocessing
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer as HuggingFaceTokenizer
from tokenizers import models, pre_tokenizers, trainers
from torch import Tensor
from torch.nn import functional as F

from transformer_cli.checkpoint.trained_files import load_trained
from transformer_cli.config import RuntimeConfig
from transformer_cli.decoding.loading import load_translator
from transformer_cli.extensions.exchange.import_folder import import_folder
from transformer_cli.extensions.exchange.model_folder import NamedLanguages
from transformer_cli.process.errors import DataError, TryAgainError, UsageError
from transformer_cli.text import SequenceFormat

from .marian_folders import sentences

pytestmark = pytest.mark.process  # weights that are pickled are read in a process
WIDTH, NUM_HEADS, LENGTH, D_FF = 16, 8, 24, 20
SPECIALS = ["[UNK]", "[PAD]", "[SOS]", "[EOS]"]


@pytest.fixture(autouse=True)
def _the_reading_process_is_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of this process need not import PyTorch; test_hugging_face_import.py reads weights in a new one."""
    copies = multiprocessing.get_context("fork")
    monkeypatch.setattr(multiprocessing, "get_context", lambda method: copies)


def tutorial_tokenizer(texts: list[str], file: Path) -> HuggingFaceTokenizer:
    tokenizer = HuggingFaceTokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=SPECIALS, min_frequency=2, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer=trainer)
    tokenizer.save(str(file))
    return tokenizer


def tutorial_state(sizes: tuple[int, int], *, is_of_video: bool) -> dict[str, Tensor]:
    """Random weights with the tutorial's names; in the state of its video, or that of its repository."""
    norm = (1,) if is_of_video else (WIDTH,)
    shapes: dict[str, tuple[int, ...]] = {
        "src_embed.embedding.weight": (sizes[0], WIDTH),
        "tgt_embed.embedding.weight": (sizes[1], WIDTH),
        "projection_layer.proj.weight": (sizes[1], WIDTH),
        "projection_layer.proj.bias": (sizes[1],),
    }
    for stack, num_layers, attentions in (
        ("encoder", 2, ["self"]),
        ("decoder", 1, ["self", "cross"]),
    ):
        for layer in (f"{stack}.layers.{number}" for number in range(num_layers)):
            for attention in attentions:
                for letter in "qkvo":
                    linear = f"{layer}.{attention}_attention_block.w_{letter}"
                    shapes[f"{linear}.weight"] = (WIDTH, WIDTH)
                    if is_of_video:
                        shapes[f"{linear}.bias"] = (WIDTH,)
            for number, shape in ((1, (D_FF, WIDTH)), (2, (WIDTH, D_FF))):
                shapes[f"{layer}.feed_forward_block.linear_{number}.weight"] = shape
                shapes[f"{layer}.feed_forward_block.linear_{number}.bias"] = shape[:1]
            for number in range(len(attentions) + 1):
                shapes[f"{layer}.residual_connections.{number}.norm.alpha"] = norm
                shapes[f"{layer}.residual_connections.{number}.norm.bias"] = norm
        shapes[f"{stack}.norm.alpha"] = shapes[f"{stack}.norm.bias"] = norm
    torch.manual_seed(5)
    state = {name: 0.5 * torch.randn(shape) for name, shape in shapes.items()}
    places = torch.arange(LENGTH)[:, None]
    angles = places / 10000.0 ** (torch.arange(0, WIDTH, 2) / WIDTH)
    table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    return state | {"src_pos.pe": table[None], "tgt_pos.pe": table[None]}


def tutorial_logits(state: dict[str, Tensor], source: Tensor, target: Tensor) -> Tensor:
    """What the tutorial's model computes, from its weights by name."""

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, state[f"{name}.weight"], state.get(f"{name}.bias"))

    def norm(x: Tensor, name: str) -> Tensor:
        spread = x.std(-1, keepdim=True) + 1e-6
        centred = x - x.mean(-1, keepdim=True)
        return state[f"{name}.alpha"] * centred / spread + state[f"{name}.bias"]

    def attention(x: Tensor, of: Tensor, name: str, *, causal: bool = False) -> Tensor:
        q, k, v = (
            linear(one, f"{name}.w_{letter}").unflatten(-1, (NUM_HEADS, -1)).transpose(1, 2)
            for one, letter in ((x, "q"), (of, "k"), (of, "v"))
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // NUM_HEADS)
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores[0, 0]).triu(1).bool(), -1e9)
        return linear((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), f"{name}.w_o")

    def feed_forward(x: Tensor, layer: str) -> Tensor:
        name = f"{layer}.feed_forward_block.linear_"
        return linear(linear(x, f"{name}1").relu(), f"{name}2")

    def embedded(ids: Tensor, side: str) -> Tensor:
        x = state[f"{side}_embed.embedding.weight"][ids] * math.sqrt(WIDTH)
        return x + state[f"{side}_pos.pe"][:, : ids.size(1)]

    memory = embedded(source, "src")
    for number in range(2):
        layer = f"encoder.layers.{number}"
        normed = norm(memory, f"{layer}.residual_connections.0.norm")
        memory = memory + attention(normed, normed, f"{layer}.self_attention_block")
        memory = memory + feed_forward(norm(memory, f"{layer}.residual_connections.1.norm"), layer)
    memory = norm(memory, "encoder.norm")
    x, layer = embedded(target, "tgt"), "decoder.layers.0"
    normed = norm(x, f"{layer}.residual_connections.0.norm")
    x = x + attention(normed, normed, f"{layer}.self_attention_block", causal=True)
    normed = norm(x, f"{layer}.residual_connections.1.norm")
    x = x + attention(normed, memory, f"{layer}.cross_attention_block")
    x = x + feed_forward(norm(x, f"{layer}.residual_connections.2.norm"), layer)
    return linear(norm(x, "decoder.norm"), "projection_layer.proj")


def write_tutorial(
    tmp_path: Path, *, is_of_video: bool = False
) -> tuple[Path, dict[str, Tensor], list[HuggingFaceTokenizer]]:
    """A folder with two checkpoints, the weights of both, and the tokenizers."""
    folder = tmp_path / "tutorial"
    weights = folder / "opus_books_weights"
    weights.mkdir(parents=True)
    both = [
        tutorial_tokenizer(texts, folder / f"tokenizer_{language}.json")
        for texts, language in zip(sentences(), ("en", "it"), strict=True)
    ]
    sizes = both[0].get_vocab_size(), both[1].get_vocab_size()
    state = tutorial_state(sizes, is_of_video=is_of_video)
    for epoch in (9, 10):
        saved = {
            "epoch": epoch,
            "model_state_dict": state,
            "optimizer_state_dict": {"state": {}, "param_groups": [{"lr": 1e-4}]},
            "global_step": 70 + epoch,
        }
        torch.save(saved, weights / f"tmodel_{epoch:02d}.pt")
    return folder, state, both


@pytest.mark.long
@pytest.mark.parametrize("is_of_video", [True, False])
def test_logits_and_ids_are_those_of_the_tutorial(is_of_video: bool, tmp_path: Path) -> None:
    folder, state, (source, target) = write_tutorial(tmp_path, is_of_video=is_of_video)
    imported, run = import_folder(folder, "mine", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert imported.origin == "tmodel_10.pt of the tutorial, epoch 10"
    trained = load_trained(run.path)
    assert trained.step == 80
    assert [str(one) for one in trained.config.data.directions] == ["en-it"]
    rows = [0, 1, 2, 3, 2, *range(4, source.get_vocab_size())]
    sequences = SequenceFormat.of(trained.config.data)
    ours = trained.source_tokenizer
    for text in [*sentences()[0][:40], "Hello, zzz!! (don't) e\u0301 <2it>", ""]:
        ids = sequences.source(ours.encode(text), ours, 0)
        theirs = [2, *source.encode(text).ids, 3]
        assert [rows[index] for index in ids] == theirs
        target_ids = torch.tensor([[2, *target.encode(sentences()[1][0]).ids]])
        is_real = torch.ones(1, len(ids), dtype=torch.bool)
        with torch.inference_mode():
            found = trained.model(torch.tensor([ids]), is_real, target_ids)
        expected = tutorial_logits(state, torch.tensor([theirs]), target_ids)
        torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-5)
    for text in sentences()[1][:40]:
        encoded = target.encode(text).ids
        assert trained.target_tokenizer.encode(text) == encoded
        shown = trained.target_tokenizer.decode([one for one in encoded if one != 0])
        assert shown == target.decode(encoded)


def test_greedy_translations_are_those_of_the_tutorial(tmp_path: Path) -> None:
    folder, state, (source, _) = write_tutorial(tmp_path)
    _, run = import_folder(folder, "mine", NamedLanguages("en", ("it",)), runs_folder=tmp_path / "runs")
    exact = RuntimeConfig(device="cpu", precision="float32")
    translator = load_translator(run.path, runtime=exact)
    text = sentences()[0][3]
    written = [2]
    while len(written) < 12 and written[-1] != 3:
        ids = torch.tensor([[2, *source.encode(text).ids, 3]])
        logits = tutorial_logits(state, ids, torch.tensor([written]))[0, -1]
        logits[[1, 2]] = -torch.inf  # [PAD] and [SOS], which our search never writes
        written.append(int(logits.argmax()))
    [found] = translator.engine.translate(
        [translator.towards(None).pipeline.prepare(text).requests[0]],
        translator.decoding.model_copy(update={"beam_size": 1, "max_length": 11}),
    )
    assert [*found[0].ids][: len(written) - 1] == written[1:]


def test_languages_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    folder, *_ = write_tutorial(tmp_path)
    with pytest.raises(UsageError, match="fr: the folder has tokenizers of en, it"):
        import_folder(folder, "mine", NamedLanguages("fr"), runs_folder=tmp_path / "runs")
    with pytest.raises(DataError, match="the tokenizers have other numbers"):
        import_folder(folder, "mine", NamedLanguages("it"), runs_folder=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "tensor", "problem"),
    [
        ("projection_layer.proj.weight", None, "no projection_layer.proj.weight"),
        ("projection_layer.proj.weight", torch.tensor(1.0), "projection_layer.proj.weight has"),
        ("src_embed.embedding.weight", torch.tensor(1.0), "src_embed.embedding.weight has"),
        ("src_pos.pe", torch.ones(7), "src_pos.pe has the shape [7]"),
        ("src_pos.pe", torch.ones(1, 0, WIDTH), "max_length"),
        ("encoder.layers.x.norm.alpha", torch.ones(1), "encoder.layers.x.norm.alpha is no weight"),
        ("encoder.layers.999999.norm.alpha", torch.ones(1), "encoder_layers"),
        ("encoder.norm.weight", torch.ones(WIDTH), "stand for one weight, encoder.norm.weight"),
        ("encoder.norm.alpha", torch.full((WIDTH,), math.inf), "encoder.norm.alpha has values"),
    ],
)
def test_a_damaged_weight_is_named_with_its_file(
    name: str, tensor: Tensor | None, problem: str, tmp_path: Path
) -> None:
    folder, state, _ = write_tutorial(tmp_path)
    state.pop(name, None)
    if tensor is not None:
        state[name] = tensor
    torch.save({"model_state_dict": state}, folder / "tmodel_99.pt")
    with pytest.raises(DataError) as raised:
        import_folder(folder, "mine", NamedLanguages(), runs_folder=tmp_path / "runs")
    assert raised.value.message.startswith(f"{folder / 'tmodel_99.pt'}: ")
    assert problem in raised.value.message
    assert not (tmp_path / "runs").exists()


def test_a_small_file_that_asks_for_much_memory_is_no_damaged_file(tmp_path: Path) -> None:
    folder, state, _ = write_tutorial(tmp_path)
    huge = torch.zeros(1).expand(10**12)
    torch.save({"model_state_dict": state | {"extra": huge}}, folder / "tmodel_99.pt")
    with pytest.raises(TryAgainError, match="more memory than its size allows"):
        import_folder(folder, "mine", NamedLanguages(), runs_folder=tmp_path / "runs")


def test_a_missing_weight_is_named(tmp_path: Path) -> None:
    folder, state, _ = write_tutorial(tmp_path)
    name = "decoder.layers.0.cross_attention_block.w_q.weight"
    del state[name]
    torch.save({"model_state_dict": state}, folder / "tmodel_99.pt")
    with pytest.raises(DataError, match=r"cross_attention\.query\.weight"):
        import_folder(folder, "mine", NamedLanguages(), runs_folder=tmp_path / "runs")
