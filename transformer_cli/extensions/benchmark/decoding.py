"""The benchmark of translating: `tfm translate` under a stopwatch, what limits it, trials of other settings, and all engines in turns."""

import copy
import itertools
import logging
import operator
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pkgutil import resolve_name
from typing import Any, cast

import torch
from torch import Tensor

from transformer_cli.acceleration.flop import flop_counter
from transformer_cli.acceleration.native_kernels import PRICE_OF_NONE, why_no_kernels
from transformer_cli.acceleration.recorded_decoder import MOST_ROWS
from transformer_cli.checkpoint.trained_files import TrainedModel
from transformer_cli.config import Config, DecodingConfig, load_config
from transformer_cli.config.loading import override_settings
from transformer_cli.data.selection import held_out_pairs
from transformer_cli.decoding import Translator
from transformer_cli.decoding.engine import MAX_LOGITS, Engine, Hypothesis, Request
from transformer_cli.decoding.loading import OTHER_ENGINES, build_translator, load_run
from transformer_cli.decoding.pytorch_engine import PyTorchEngine
from transformer_cli.decoding.search.beam import AttendingScorer
from transformer_cli.decoding.shortlist import Shortlist
from transformer_cli.evaluation.held_out_text import corpus_needed
from transformer_cli.extensions.benchmark import measuring
from transformer_cli.extensions.benchmark.advice import MachineFacts, Suggestion, advised, setting, worth_trying
from transformer_cli.extensions.benchmark.measuring import Figures, Observed, Pacing, Stopwatch, Timed
from transformer_cli.model import Transformer
from transformer_cli.process.device import forget_peak_memory, peak_memory, prepare_machine, processor_name
from transformer_cli.process.errors import TfmError
from transformer_cli.storage import temporary_folder
from transformer_cli.text import SequenceFormat
from transformer_cli.text.tokenizer import Tokenizers
from transformer_cli.training.initial_weights import data_of, new_model

logger = logging.getLogger(__name__)

PHASES = TEXT, ENCODER, DECODER, SEARCH = "text", "encoder", "decoder steps", "search"
"""Text: tokenising and joining. Encoder: with the keys and values that the decoder reads. Search: what is left."""
FORCED = SequenceFormat(has_end=False)
"""As many target tokens as source tokens, because a model with random weights would not end its sentences."""
USUAL_BEAM = 4
MOST_LINES = 2000
SHARE_IN_TURNS = 0.3  # of the lines, those that the engines translate in turns
MANY_ROWS = 256  # with so many rows or more, the matrix products of a decoder step are large enough
OTHER = "ctranslate2"
CONTESTANTS = {
    "cpu": {"torch": ("float32", "bfloat16", "int8"), OTHER: ("float32", "int8")},
    "cuda": {"torch": ("float32", "auto"), OTHER: ("float32", "float16", "bfloat16")},
}
"""The precisions of the engines by device. On a GPU, `auto` is the one in which this card is fast."""
CLEAR_GAIN = 1.1  # another precision must be so many times as fast to be advised: translations in it may differ


def measure_decoding(config_path: str | None, run: str | None, overrides: Sequence[str]) -> tuple[Config, Figures]:
    """Measure translating the validation split: by a config's model with random weights, or by a trained run."""
    shortlist = None
    if config_path is not None:
        config = load_config(config_path, overrides)
        prepare_machine(config.runtime)  # a missing device is an error before the corpus is read
        with temporary_folder("tfm-benchmark-") as folder:
            data = data_of(config, folder / "data")
            pairs, tokenizers = data.validation, data.tokenizers
        model = new_model(config, tokenizers).eval()
    else:
        loaded = load_run(run, overrides, command="benchmark --decode")
        config, trained, engine = loaded.config, loaded.trained, loaded.translator.engine
        assert isinstance(trained, TrainedModel), "this command takes the PyTorch engine only"
        assert isinstance(engine, PyTorchEngine)
        model, tokenizers, shortlist = trained.model, trained.tokenizers, engine.shortlist
        instead = "measure the model of a config, with weights that are not trained: --config en-it.yaml"
        with corpus_needed(loaded, instead):
            pairs = held_out_pairs(config, "validation")
    subject = Subject(model, tokenizers, config, is_forced=config_path is not None, shortlist=shortlist)
    return config, benchmark_decoding(subject, [pair.source for pair in pairs], measuring.Pacing())


@dataclass
class Subject:
    """A model that translates for the benchmark, with the settings of a config."""

    model: Transformer
    tokenizers: Tokenizers
    config: Config
    is_forced: bool = False  # the weights are random, and each translation has as many tokens as its source
    shortlist: Shortlist | None = None  # of a run with `decoding.shortlist`

    def __post_init__(self) -> None:
        self.machine = prepare_machine(self.config.runtime, records=self.config.runtime.cuda_graphs is not False)
        self.num_threads = torch.get_num_threads()

    @contextmanager
    def changed(self, overrides: Sequence[str]) -> Iterator["Subject"]:
        """The same model with other settings."""
        yield replace(self, config=override_settings(self.config, overrides))

    def translator(self, beam_size: int) -> Translator:
        """The translator, as `tfm translate` makes it."""
        decoding = self.config.decoding.best_of_beam(beam_size)
        if self.is_forced:  # what random weights write fits no source
            decoding = decoding.model_copy(update={"repair": False})
        translator = build_translator(self.model, *self.tokenizers, self.config, self.machine, decoding=decoding)
        assert isinstance(translator.engine, PyTorchEngine)
        engine = replace(translator.engine.prepared(), shortlist=self.shortlist)
        return replace(translator, engine=replace(engine, sequence_format=FORCED) if self.is_forced else engine)

    def translate(self, lines: Sequence[str], beam_size: int, *, phases: bool = False) -> Timed:
        """Translate all lines once; see `translate_round`."""
        torch.set_num_threads(self.num_threads)
        return translate_round(self.translator(beam_size), lines, phases=phases)


def translate_round(translator: Translator, lines: Sequence[str], *, phases: bool = False) -> Timed:
    """Translate all lines once, with the PyTorch engine of a translator.

    With `phases`, they and the work of the batches are measured too, and no kernel does a whole search at once (int8).
    """
    engine, found = translator.engine, Timed()
    assert isinstance(engine, PyTorchEngine)
    stopwatch = Stopwatch(engine.machine.device, phases=phases)
    if phases:
        own = {one.name: getattr(engine, one.name) for one in fields(engine)} | {"native_search": None}
        engine = WatchedEngine(**own, stopwatch=stopwatch, found=found)
    search = stopwatch.around(engine.translate, TEXT, SEARCH)

    def translate(requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        hypotheses: list[list[Hypothesis]] = search(requests, options)
        found.num_tokens += sum(len(request.ids) for request in requests)
        found.target_tokens += num_tokens(hypotheses)
        return hypotheses

    watched = cast(Engine, Observed(engine, translate=translate))
    for _ in replace(translator, engine=watched).translate(lines):
        pass
    stopwatch.give_time(found, PHASES, TEXT)
    return found


def num_tokens(hypotheses: Sequence[Sequence[Hypothesis]]) -> int:
    """The tokens of the best translations."""
    return sum(len(best[0].ids) for best in hypotheses if best)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedEngine(PyTorchEngine):
    """An engine that counts the work of its batches, and marks the encoder and each decoder step of its searches."""

    stopwatch: Stopwatch
    found: Timed

    def started(self, source_ids: Tensor, source_mask: Tensor | None, *, with_attention: bool) -> AttendingScorer:
        """The scorer at the beginning of a search, watched."""
        found, around, (num_sources, length) = self.found, self.stopwatch.around, source_ids.shape
        begin = around(partial(PyTorchEngine.started, self), SEARCH, ENCODER)
        state = begin(source_ids, source_mask, with_attention=with_attention)
        step, steps = around(state.advance, SEARCH, DECODER), itertools.count(1)
        found.num_batches += 1
        found.num_cells += num_sources * length
        found.work += (num_sources * length, 0, num_sources * length * length, 0, 0)

        def advance(last_ids: Tensor) -> Tensor:
            rows = len(last_ids)
            found.num_steps += 1
            found.work += (0, rows, 0, rows * next(steps), rows * length)
            scores: Tensor = step(last_ids)
            return scores

        return cast(AttendingScorer, Observed(state, advance=advance, select=around(state.select, SEARCH, DECODER)))


def benchmark_decoding(subject: Subject, lines: Sequence[str], pacing: Pacing) -> Figures:
    """Measure greedy search and beam search of the first lines on this machine; try suggested settings in short trials."""
    machine, decoding, facts = subject.machine, subject.config.decoding, MachineFacts.of(subject.machine)
    beam_size = decoding.beam_size if decoding.beam_size > 1 else USUAL_BEAM
    described = machine.describe()  # the trials change the number of threads
    logger.info("warming up")
    lines = _as_many_as_fit(subject, lines, pacing)
    watched = subject.translate(lines, 1, phases=True)
    num_rows = max(1, int(watched.work[1]) // watched.num_steps)
    own_shape = num_rows, subject.config.model.d_model, subject.model.output.out_features
    products, peak = measuring.measure_products(machine, own_shape, seconds=pacing.product_seconds)
    forget_peak_memory(machine.device)
    greedy, beam = (_measured(subject, lines, size, peak, pacing) for size in (1, beam_size))
    memory = peak_memory(machine.device)
    advice = advised(
        decoding_limit(greedy, beam),
        decoding_suggestions(beam, facts, decoding.batch_tokens, len(lines), machine.records_passes),
        subject,
        lambda one, unit: measuring.speed_of([one.translate(lines, beam_size)], unit),
        pacing,
    )
    turn_lines = lines[: max(1, round(len(lines) * SHARE_IN_TURNS))]
    engines = engines_in_turns(subject, turn_lines, (1, beam_size), num_rounds=pacing.num_rounds)
    advice["conclusion"] += advice_on_engines(engines["figures"], machine.precision_name, beam_size, facts.device)
    if facts.device == "cpu" and (reason := why_no_kernels()) is not None:
        advice["conclusion"] += f" There are no kernels in C ({reason}): {PRICE_OF_NONE}."
    return {
        "machine": described,
        "num_parameters": sum(parameter.numel() for parameter in subject.model.parameters()),
        "num_lines": len(lines),
        "is_forced": subject.is_forced,
        "greedy": greedy,
        "beam": beam,
        "memory": memory,
        "products": products,
        "peak": peak,
        **advice,
        "engines": engines,
    }


def _as_many_as_fit(subject: Subject, lines: Sequence[str], pacing: Pacing) -> Sequence[str]:
    """The first lines: as many as greedy search translates in the time of a round."""
    num_lines, most = 16, min(len(lines), MOST_LINES)
    subject.translate(lines[:num_lines], 1)
    while num_lines < most and subject.translate(lines[:num_lines], 1).seconds <= pacing.round_seconds / 2:
        num_lines *= 2
    return lines[: min(num_lines, most)]


def _measured(subject: Subject, lines: Sequence[str], beam_size: int, peak: Figures, pacing: Pacing) -> Figures:
    """The figures of a search; its FLOP are those of all rows of a beam. Work and phases are those of a search step by step."""
    logger.info("measuring beam size %d, %d lines", beam_size, len(lines))
    rounds = [subject.translate(lines, beam_size) for _ in range(pacing.num_rounds)]
    marked = [subject.translate(lines, beam_size, phases=True) for _ in range(max(1, pacing.num_rounds // 2))]
    rounds = [replace(one, work=marked[0].work, num_cells=marked[0].num_cells) for one in rounds]
    per_batch = [{name: taken / one.num_batches for name, taken in one.phases.items()} for one in marked]
    unit = measuring.unit_of_speed(subject.machine.device.type)
    flop_of = flop_counter(subject.model, trains=False)
    return {
        "beam_size": beam_size,
        "num_rounds": len(rounds),
        **measuring.rates(rounds, "source"),
        "rows_per_step": int(marked[0].work[1]) / marked[0].num_steps,
        **measuring.figures_of("batch", rounds, per_batch, flop_of, peak, unit),
    }


def decoding_limit(greedy: Figures, beam: Figures) -> str:
    """One sentence: the phase that takes the most time, the share of the peak, and the price of the beam."""
    name = measuring.longest_of(beam["phases"])
    speeds = [one["target_tokens_per_cpu_second"]["median"] for one in (greedy, beam)]
    return (
        f"{name.capitalize()} {'take' if name == DECODER else 'takes'} {beam['phases'][name]['share']:.0%} of the time "
        f"with beam size {beam['beam_size']}, at {beam['rows_per_step']:,.0f} rows a step; the matrix products reach "
        f"{beam['share_of_peak']:.0%} of this machine's peak, and greedy search is {speeds[0] / speeds[1]:.1f} times as fast"
    )


def decoding_suggestions(
    beam: Figures, facts: MachineFacts, batch_tokens: int, num_lines: int, is_recorded: bool = False
) -> list[Suggestion]:
    """What is worth a trial of translating so many lines at once; `is_recorded`: a GPU repeats recorded steps."""
    rows, found = beam["rows_per_step"], [*facts.suggestions()]
    if facts.device == "cuda" and not is_recorded and rows <= MOST_ROWS:
        found.append(setting("the CPU starts each kernel of a step", "runtime.cuda_graphs=true", 3.0))
    if rows < MANY_ROWS and rows / beam["beam_size"] < num_lines / 2:
        because = f"a decoder step has only {rows:,.0f} rows"
        found.append(setting(because, f"decoding.batch_tokens={4 * batch_tokens}", 1.3))
    elif facts.device == "cpu" and beam["phases"][SEARCH]["share"] > 0.25:
        because = f"a decoder step has {rows:,.0f} rows, whose scores do not fit into the caches"
        found.append(setting(because, f"decoding.batch_tokens={max(batch_tokens // 4, 1)}", 1.1))
    return worth_trying(found)


def engines_in_turns(subject: Subject, lines: Sequence[str], beam_sizes: Sequence[int], *, num_rounds: int) -> Figures:
    """Measure the same sentences with PyTorch in each precision and with CTranslate2, without the text pipeline, which is the same for all."""
    contestants, left_out = contestants_of(subject)
    device, figures = subject.machine.device, list[Figures]()
    unit, pipeline = measuring.unit_of_speed(device.type), subject.translator(1).pipeline
    requests = [part for line in lines for part in pipeline.prepare(line).requests]
    if subject.is_forced:
        requests = requests_of_one_length(requests)
    for beam_size in beam_sizes:
        logger.info("measuring engines in turns, beam size %d, %d lines", beam_size, len(lines))
        options = subject.config.decoding.best_of_beam(beam_size)
        turns = {name: list[Timed]() for name in contestants}
        for _ in range(num_rounds + 1):
            for name, engine in [*contestants.items()]:
                torch.set_num_threads(subject.num_threads)
                stopwatch = Stopwatch(device)
                try:
                    turns[name].append(Timed(target_tokens=num_tokens(engine.translate(requests, options))))
                except TfmError as error:  # CTranslate2 does not know a setting of decoding
                    del contestants[name], turns[name]
                    left_out.append(f"{', '.join(name)}: {error.message}")
                else:
                    stopwatch.give_time(turns[name][-1], (), "all")
        # Without the round that warmed up. A ratio is taken per round, so that a slow one does not change it.
        speeds = {name: [measuring.speed_of([one], unit) for one in rounds[1:]] for name, rounds in turns.items()}
        for (library, precision), own in speeds.items():
            others = speeds.get((OTHER, precision))
            figures.append(
                {"engine": library, "precision": precision, "beam_size": beam_size}
                | measuring.rates(turns[library, precision][1:])
                | {"ratio": others and measuring.spread(map(operator.truediv, own, others))}
            )
    return {
        "processor": processor_name(),
        "num_threads": subject.num_threads,
        "num_lines": len(requests) if subject.is_forced else len(lines),
        "num_rounds": num_rounds,
        "unit": unit,
        "figures": figures,
        "left_out": left_out,
    }


def requests_of_one_length(requests: Sequence[Request]) -> list[Request]:
    """The sources that have at least the median length, cut to it: CTranslate2 forces one length for all translations of a batch."""
    length = statistics.median_high(len(request.ids) for request in requests)
    return [request._replace(ids=request.ids[:length]) for request in requests if len(request.ids) >= length]


def contestants_of(subject: Subject) -> tuple[dict[tuple[str, str], Engine], list[str]]:
    """The engines, by library and precision, that can translate with this model on this machine, and why others cannot."""
    found, left_out = dict[tuple[str, str], Engine](), dict[str, None]()
    machine = f"runtime.device={subject.machine.device.type}", f"runtime.threads={subject.num_threads}"
    for library, precisions in CONTESTANTS.get(subject.machine.device.type, {}).items():
        for precision in precisions:
            try:
                with subject.changed([*machine, f"runtime.precision={precision}"]) as changed:
                    name = library, changed.machine.precision_name
                    found[name] = changed.translator(1).engine if library == "torch" else _other_engine(changed)
            except TfmError as error:
                left_out["; ".join(filter(None, (f"{library}: {error.message}", error.hint)))] = None
    return found, [*left_out]


def _other_engine(subject: Subject) -> Engine:
    """CTranslate2 with the settings of a subject; its weights are converted on the CPU. What it cannot translate, PyTorch does."""
    build: Any = resolve_name(OTHER_ENGINES[OTHER].build)
    weights = copy.deepcopy(subject.model).cpu()
    engine = build(weights, subject.tokenizers[1], subject.config, lambda: subject.translator(1).engine)

    def translate(requests: Sequence[Request], options: DecodingConfig) -> list[list[Hypothesis]]:
        """With forced lengths; see `requests_of_one_length`."""
        length = len(requests[0].ids)
        most = min(options.batch_tokens // length, MAX_LOGITS // (options.beam_size * engine.vocabulary_size))
        results = engine.translator.translate_batch(
            [[str(token) for token in request.ids] for request in requests],
            beam_size=options.beam_size,
            max_batch_size=max(1, most),
            max_input_length=0,
            min_decoding_length=length,
            max_decoding_length=length,
        )
        return [[Hypothesis(one.hypotheses[0], 0.0)] for one in results]

    return cast(Engine, Observed(engine, translate=translate) if subject.is_forced else engine)


def advice_on_engines(figures: Sequence[Figures], precision: str, beam_size: int, device: str) -> str:
    """Sentences that name a precision, or the other engine, if it was clearly faster than the precision of now; empty without one."""
    unit = measuring.unit_of_speed(device)
    key, found = measuring.key_of_speed("target", unit), ""
    of_beam = [one for one in figures if one["beam_size"] == beam_size]
    speeds = {(one["engine"], one["precision"]): one[key]["median"] for one in of_beam}
    now = speeds.get(("torch", precision))
    if now is None:  # such as float16 on a CPU
        return ""
    own, fastest = max((speed, one) for (library, one), speed in speeds.items() if library == "torch")
    if own >= CLEAR_GAIN * now:
        found = (
            f" With runtime.precision={fastest}, PyTorch was {own / now:.1f} times as fast as with "
            f"{precision}, per {unit}; compare the scores of both: tfm validate --set runtime.precision={fastest}."
        )
    best, library, other = max((speed, *name) for name, speed in speeds.items())
    if library == OTHER and best >= CLEAR_GAIN * own:
        found += (
            f" CTranslate2 in {other} was {best / own:.1f} times as fast as PyTorch in {fastest}, per {unit}: "
            f"decoding.engine={OTHER}, runtime.precision={other}."
        )
    return found
