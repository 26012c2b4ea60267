import json
import math

import pytest
import torch
import torch.nn.functional as F

from transformer_cli.config import (
    Config,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    PhrasebookData,
    SequencesData,
    TokenizerConfig,
    TrainingConfig,
)
from transformer_cli.data.pairs import SentencePair
from transformer_cli.decoding import Translator
from transformer_cli.decoding.loading import build_translator
from transformer_cli.evaluation.metrics import score_corpus
from transformer_cli.evaluation.validation import ValidationReport, conditions_of, validate
from transformer_cli.model.transformer import Transformer
from transformer_cli.process.device import Machine
from transformer_cli.process.errors import DataError
from transformer_cli.text.tokenizer import Tokenizer, train_tokenizer

PAIRS = [
    SentencePair("one two", "uno due"),
    SentencePair("three", "tre"),
    SentencePair("one two three four five", "uno due tre quattro cinque"),
    SentencePair("unheard words", "parole inaudite"),
    SentencePair("", "cinque"),
    SentencePair("four", ""),
    SentencePair("five  five", "cinque  cinque cinque cinque"),
]


@pytest.fixture(scope="module")
def tokenizers() -> tuple[Tokenizer, Tokenizer]:
    return (
        train_tokenizer(["one two three four five  five"], TokenizerConfig()),
        train_tokenizer(["uno due tre quattro cinque  cinque"], TokenizerConfig()),
    )


def model_of(tokenizers: tuple[Tokenizer, Tokenizer], **settings: object) -> Transformer:
    torch.manual_seed(1)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
    config = ModelConfig.model_validate({**sizes, "max_length": 20, **settings})
    source, target = tokenizers
    model = Transformer(config, source.vocab_size, target.vocab_size).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)
    return model


def translator(
    tokenizers: tuple[Tokenizer, Tokenizer],
    model: Transformer | None = None,
    *,
    batch_tokens: int = 4096,
    data: DataConfig | None = None,
    **of_the_text: bool,
) -> Translator:
    model = model or model_of(tokenizers)
    config = Config(
        name="small",
        data=data or PhrasebookData(),
        model=model.config,
        training=TrainingConfig(max_steps=1, batch_sentences=1),
        decoding=DecodingConfig.model_validate(
            {"beam_size": 2, "batch_tokens": batch_tokens, "repair": False, **of_the_text}
        ),
    )
    machine = Machine(torch.device("cpu"), torch.float32)
    return build_translator(model, *tokenizers, config, machine)


def loss_of_one(
    tokenizers: tuple[Tokenizer, Tokenizer],
    model: Transformer,
    pair: SentencePair,
    max_length: int = 10**6,
) -> tuple[float, int]:
    """The oracle: no padding, no batch, PyTorch's own cross-entropy."""
    source, target = tokenizers
    source_ids = [*source.encode(pair.source), source.eos_id][:max_length]
    target_ids = [*target.encode(pair.target), target.eos_id][:max_length]
    with torch.no_grad():
        logits = model(
            torch.tensor([source_ids]),
            torch.ones(1, len(source_ids), dtype=torch.bool),
            torch.tensor([[target.sos_id, *target_ids[:-1]]]),
        )
    loss = F.cross_entropy(logits[0], torch.tensor(target_ids), reduction="sum")
    return loss.item(), len(target_ids)


def mean_loss(tokenizers: tuple[Tokenizer, Tokenizer], model: Transformer, max_length: int = 10**6) -> float:
    """Over PAIRS."""
    of_pairs = [loss_of_one(tokenizers, model, pair, max_length) for pair in PAIRS]
    losses, lengths = zip(*of_pairs, strict=True)
    return math.fsum(losses) / sum(lengths)


@pytest.mark.long
@pytest.mark.parametrize("batch_tokens", [1, 9, 4096])
def test_the_loss_is_the_cross_entropy_per_target_token_whatever_the_batches(
    tokenizers: tuple[Tokenizer, Tokenizer], batch_tokens: int
) -> None:
    model = model_of(tokenizers)
    report = validate(translator(tokenizers, model, batch_tokens=batch_tokens), PAIRS, scores=[])
    assert report.loss == pytest.approx(mean_loss(tokenizers, model), abs=1e-9)
    assert report.perplexity == pytest.approx(math.exp(report.loss))
    assert report.num_sentences == len(PAIRS)
    assert report.num_target_tokens == sum(loss_of_one(tokenizers, model, pair)[1] for pair in PAIRS)


@pytest.mark.long
def test_scores_are_of_decoded_text_against_the_references_as_they_are(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    of = translator(tokenizers)
    pairs = [*PAIRS, SentencePair("one", "e\u0301 vero"), SentencePair("two", "di piu\u0300\x07")]
    names = ["bleu", "chrf", "ter", "cer", "wer"]
    report = validate(of, pairs, scores=names)
    texts = [translation.text for translation in of.translate([pair.source for pair in pairs])]
    references = [pair.target for pair in pairs]
    of_texts = score_corpus(texts, references, names, target_language="it")
    assert report.scores == [
        score._replace(signature=f"{score.signature}|keep_text:yes|repair:no|split_sentences:yes") for score in of_texts
    ]


@pytest.mark.long
def test_the_signature_says_whether_the_guards_of_the_text_were_on(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    for is_on, said in ((True, "yes"), (False, "no")):
        of = translator(tokenizers, keep_text=is_on, repair=is_on)
        for with_intervals in (True, False):
            report = validate(of, PAIRS, scores=["bleu"], with_intervals=with_intervals)
            assert f"|keep_text:{said}|repair:{said}|" in report.scores[0].signature


def test_the_signature_says_how_lines_were_read(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    """Two sentences in a line: split, they have another score, so the signatures must differ, too."""

    def signature(**settings: bool) -> str:
        return conditions_of(translator(tokenizers, **settings))

    assert signature() == "keep_text:yes|repair:no|split_sentences:yes"
    assert signature(split_sentences=False) == "keep_text:yes|repair:no|split_sentences:no"
    whole = dict.fromkeys(("split_sentences", "keep_layout", "known_spellings"), False)
    assert signature(**whole).endswith("|split_sentences:no|keep_layout:no|known_spellings:no")


@pytest.mark.long
def test_details_do_not_change_the_scores(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    of = translator(tokenizers)
    pairs = [SentencePair(f"  - {pair.source}:", pair.target) for pair in PAIRS if pair.source]
    plain, detailed = (validate(of, pairs, with_details=wanted) for wanted in (False, True))
    assert detailed.scores == plain.scores
    assert detailed.samples == plain.samples
    whole = of.translate([pair.source for pair in pairs], with_details=True)
    found = detailed.parts[0].translations
    assert any(one.text != other.text for one, other in zip(found, whole, strict=True))
    assert all(one.details is not None for one in found)


def test_the_score_of_what_the_model_says_is_perfect(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    of = translator(tokenizers)
    sources = ["one two three", "four five", "two two"]
    pairs = [SentencePair(t.source, t.text) for t in of.translate(sources)]
    assert all(pair.target for pair in pairs)
    report = validate(of, pairs, scores=["cer", "wer"])
    assert [score.value for score in report.scores] == [0.0, 0.0]


@pytest.mark.long
def test_the_report_does_not_depend_on_the_batch_size(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    small, large = (validate(translator(tokenizers, batch_tokens=n), PAIRS, num_samples=7) for n in (3, 4096))
    assert small.scores == large.scores
    assert small.samples == large.samples
    assert small.loss == pytest.approx(large.loss, abs=1e-9)


def test_text_is_normalized_before_the_loss_is_measured(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    source, _ = tokenizers
    of = translator((source, train_tokenizer(["pi\u00f9 uno"], TokenizerConfig())))
    composed, decomposed = (
        validate(of, [SentencePair("one", target)], scores=[]).loss for target in ("pi\u00f9", "piu\u0300\x07")
    )
    assert composed == decomposed


@pytest.mark.long
def test_training_mode_weights_gradients_and_random_numbers_are_left_alone(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    model = model_of(tokenizers, dropout=0.5)
    of = translator(tokenizers, model)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    before = torch.get_rng_state()
    assert validate(of, PAIRS) == validate(of, PAIRS)
    assert not any(module.training for module in model.modules())
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(model.state_dict()[name], weight) for name, weight in weights.items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_in_training_mode_is_refused(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    model = model_of(tokenizers).train()
    with pytest.raises(ValueError, match=r"call model\.eval\(\)"):
        validate(translator(tokenizers, model), PAIRS)


@pytest.mark.long
def test_samples_are_evenly_spread_and_show_what_was_scored(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    of = translator(tokenizers)
    samples = validate(of, PAIRS, num_samples=3).samples
    assert [(sample.source, sample.target) for sample in samples] == [
        (PAIRS[i].source, PAIRS[i].target) for i in (0, 2, 4)
    ]
    predicted = [translation.text for translation in of.translate([s.source for s in samples])]
    assert [sample.predicted for sample in samples] == predicted
    assert validate(of, PAIRS, scores=[], num_samples=3).samples == samples
    assert len(validate(of, PAIRS, num_samples=100).samples) == len(PAIRS)
    assert validate(of, PAIRS, num_samples=0).samples == []


def test_without_scores_and_samples_nothing_is_decoded(
    tokenizers: tuple[Tokenizer, Tokenizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(tokenizers)
    monkeypatch.setattr(model, "start_decoding", None)
    assert validate(translator(tokenizers, model), PAIRS, scores=[], num_samples=0).scores == []


def test_the_loss_of_a_pair_that_is_too_long_is_the_loss_of_its_beginning(
    tokenizers: tuple[Tokenizer, Tokenizer], caplog: pytest.LogCaptureFixture
) -> None:
    model = model_of(tokenizers, positions="learned", max_length=4)
    report = validate(translator(tokenizers, model), PAIRS, scores=["bleu"])
    assert report.loss == pytest.approx(mean_loss(tokenizers, model, max_length=4), abs=1e-9)
    assert "pairs of more than 4 tokens, shortened to measure the loss: 2" in caplog.text


def test_without_an_end_symbol_none_is_counted(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    data = SequencesData(source="sequences", end_symbol=False)
    of = translator(tokenizers, data=data)
    report = validate(of, [SentencePair("one two", "uno due"), SentencePair("", "")])
    assert report.num_target_tokens == 2


def test_no_pair_is_an_error(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    with pytest.raises(DataError, match="there are no pairs to validate on"):
        validate(translator(tokenizers), [])


def test_a_hopeless_model_has_an_infinite_perplexity_and_valid_json(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    model = model_of(tokenizers)
    with torch.no_grad():
        model.output.bias[tokenizers[1].encode("uno")] -= 1e5
    report = validate(translator(tokenizers, model), [SentencePair("one", "uno")])
    assert report.loss > 10_000
    assert report.perplexity == math.inf
    assert json.loads(json.dumps(report.as_json(), allow_nan=False))["perplexity"] is None


def test_json_has_the_names_that_programs_read(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    report = validate(translator(tokenizers), PAIRS, scores=["bleu", "wer"])
    [bleu, wer] = report.scores
    assert report.as_json() == {
        "num_sentences": len(PAIRS),
        "num_target_tokens": report.num_target_tokens,
        "loss": report.loss,
        "perplexity": report.perplexity,
        "scores": [
            {"name": "BLEU", "value": bleu.value, "signature": bleu.signature},
            {"name": "WER", "value": wer.value, "signature": wer.signature},
        ],
        "unknown_words_of_sources": {"unknown": 2, "words": 13},
    }


def test_every_metric_has_its_name(tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
    report: ValidationReport = validate(translator(tokenizers), PAIRS, scores=["bleu", "chrf"])
    assert report.metric("loss") == report.loss
    assert report.metric("perplexity") == report.perplexity
    assert report.metric("bleu") == report.scores[0].value
    assert report.metric("chrf") == report.scores[1].value


def test_the_unknown_words_of_the_sources_are_counted(
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> None:
    report = validate(translator(tokenizers), PAIRS)
    unknown_words = report.unknown_words
    assert (unknown_words.num_unknown, unknown_words.first) == (2, "unheard")
    assert unknown_words.num_words == sum(len(pair.source.split()) for pair in PAIRS)
