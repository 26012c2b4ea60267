"""Engines in turns: the same sentences, translated by PyTorch in each precision and by CTranslate2."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from transformer_cli.config import DecodingConfig
from transformer_cli.decoding.engine import MAX_LOGITS, Engine, Request, length_batches
from transformer_cli.decoding.translator import OTHER_ENGINES
from transformer_cli.extensions.benchmark.measuring import Spread, wait_for
from transformer_cli.extensions.benchmark.timed_translation import Subject, TimedRound
from transformer_cli.process.device import processor_name
from transformer_cli.process.errors import TfmError
from transformer_cli.process.imports import imported

logger = logging.getLogger(__name__)


OTHER = "ctranslate2"
OF_PYTORCH = {"cpu": ("float32", "bfloat16", "int8"), "cuda": ("float32", "auto")}
"""The precisions by device. On a GPU, `auto` is the one in which this card is fast."""
OF_OTHER = ("float32", "int8")
CLEAR_GAIN = 1.1
"""How many times as fast another precision must be to be advised: translations in it may differ."""

Translate = Callable[[Sequence[Request], DecodingConfig], int]
"""Translates all requests; returns the number of target tokens of the best translations."""


class Contestant(NamedTuple):
    """An engine in a precision."""

    engine: str
    """As in `decoding.engine`."""
    precision: str
    """As in `runtime.precision`."""
    translate: Translate


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """The speed of an engine in a precision with one beam size. A spread is over rounds."""

    engine: str
    precision: str
    beam_size: int
    target_tokens_per_second: Spread
    target_tokens_per_cpu_second: Spread
    ratio: Spread | None
    """How many times as fast as CTranslate2 in the same precision, per CPU-second; None without that."""


@dataclass(frozen=True, slots=True)
class EngineTurns:
    """All engines, measured in turns; without the text pipeline, which is the same for all."""

    processor: str
    num_threads: int
    num_lines: int
    num_rounds: int
    figures: list[EngineFigures]
    left_out: list[str]
    """Why an engine or a precision was not measured."""

    def advice(self, precision: str, beam_size: int, device: str) -> str:
        """Sentences that name a precision, or the other engine, if it was clearly faster; empty without one.

        Args:
            precision: the one that the machine uses now.
            beam_size: of the search that counts.
            device: cpu, cuda or mps; only on a CPU the speed is that per CPU-second.
        """
        is_cpu = device == "cpu"
        speeds = self._speeds("torch", beam_size, is_cpu=is_cpu)
        others = self._speeds(OTHER, beam_size, is_cpu=is_cpu)
        fastest = max(speeds, key=lambda name: speeds[name], default=precision)
        if precision not in speeds:
            return ""
        advice, unit = "", "CPU-second" if is_cpu else "second"
        if speeds[fastest] >= CLEAR_GAIN * speeds[precision]:
            advice = (
                f" With runtime.precision={fastest}, PyTorch was {speeds[fastest] / speeds[precision]:.1f} times as fast as with "
                f"{precision}, per {unit}; compare the scores of both: tfm validate --set runtime.precision={fastest}."
            )
        other = max(others, key=lambda name: others[name], default=None)
        if other is not None and others[other] >= CLEAR_GAIN * speeds[fastest]:
            advice += (
                f" CTranslate2 in {other} was {others[other] / speeds[fastest]:.1f} times as fast as PyTorch in {fastest}, per {unit}: "
                f"decoding.engine={OTHER}, runtime.precision={other}."
            )
        return advice

    def _speeds(self, engine: str, beam_size: int, *, is_cpu: bool) -> dict[str, float]:
        """The speed of an engine in each precision, in target tokens per second or CPU-second."""
        return {
            one.precision: (
                one.target_tokens_per_cpu_second if is_cpu else one.target_tokens_per_second
            ).median
            for one in self.figures
            if (one.engine, one.beam_size) == (engine, beam_size)
        }


def engines_in_turns(
    subject: Subject, lines: Sequence[str], beam_sizes: Sequence[int], *, num_rounds: int
) -> EngineTurns:
    """Measure every engine that this machine has, after a round to warm up.

    Args:
        subject: the model.
        lines: source text; each turn translates all of it.
        beam_sizes: of the searches.
        num_rounds: how often each engine takes its turn.
    """
    contestants, left_out = _contestants(subject)
    pipeline = subject.translator(1).pipeline
    requests = [part for line in lines for part in pipeline.prepare(line).requests]
    figures: list[EngineFigures] = []
    for beam_size in beam_sizes:
        logger.info("measuring engines in turns, beam size %d, %d lines", beam_size, len(lines))
        options = subject.config.decoding.best_of_beam(beam_size)
        turns: dict[tuple[str, str], list[TimedRound]] = {}
        for round_number in range(num_rounds + 1):
            for one in [*contestants]:
                try:
                    turn = _turn(one.translate, requests, options, subject)
                except TfmError as error:  # CTranslate2 does not know a setting of decoding
                    contestants.remove(one)
                    left_out.append(f"{one.engine}, {one.precision}: {error.message}")
                    continue
                if round_number:
                    turns.setdefault((one.engine, one.precision), []).append(turn)
        figures += _figures(turns, beam_size)
    threads = subject.num_threads
    return EngineTurns(processor_name(), threads, len(lines), num_rounds, figures, left_out)


def _turn(
    translate: Translate, requests: Sequence[Request], options: DecodingConfig, subject: Subject
) -> TimedRound:
    subject.take_threads()
    started_at, cpu_started_at = time.perf_counter(), time.process_time()
    num_tokens = translate(requests, options)
    wait_for(subject.machine.device)
    return TimedRound(
        target_tokens=num_tokens,
        seconds=time.perf_counter() - started_at,
        cpu_seconds=time.process_time() - cpu_started_at,
    )


def _figures(
    turns: dict[tuple[str, str], list[TimedRound]], beam_size: int
) -> Iterator[EngineFigures]:
    speeds = {
        name: [turn.target_tokens / turn.cpu_seconds for turn in of_one]
        for name, of_one in turns.items()
    }
    for (engine, precision), of_one in turns.items():
        own, others = speeds[engine, precision], speeds.get((OTHER, precision))
        # Per round, so that a slow round does not change the ratio.
        ratios = None if others is None else Spread.of(map(float.__truediv__, own, others))
        yield EngineFigures(
            engine,
            precision,
            beam_size,
            Spread.of(turn.target_tokens / turn.seconds for turn in of_one),
            Spread.of(own),
            ratios,
        )


def _contestants(subject: Subject) -> tuple[list[Contestant], list[str]]:
    """The engines that can translate with this model on this machine, and why others cannot."""
    found: list[Contestant] = []
    left_out: list[str] = []
    device = subject.machine.device.type
    for precision in OF_PYTORCH.get(device, ()):
        try:
            changed = subject.changed([f"runtime.precision={precision}"])
            engine = changed.translator(1).engine
        except TfmError as error:
            left_out.append(f"torch, {precision}: {error.message}")
        else:
            if precision == "auto":
                precision = str(changed.machine.precision).removeprefix("torch.")
            found.append(Contestant("torch", precision, _counting(engine)))
    if device != "cpu":
        left_out.append(f"{OTHER}: it is measured on a CPU only; add --set runtime.device=cpu")
        return found, left_out
    try:
        for precision in OF_OTHER:
            found.append(Contestant(OTHER, precision, _of_other(subject, device, precision)))
    except TfmError as error:
        left_out.append("; ".join(filter(None, (f"{OTHER}: {error.message}", error.hint))))
    return found, left_out


def _counting(engine: Engine) -> Translate:
    def translate(requests: Sequence[Request], options: DecodingConfig) -> int:
        found = engine.translate(requests, options)
        return sum(len(best[0].ids) for best in found if best)

    return translate


def _of_other(subject: Subject, device: str, precision: str) -> Translate:
    changes = {"device": device, "precision": precision, "threads": subject.num_threads}
    runtime = subject.config.runtime.model_copy(update=changes)
    config = subject.config.model_copy(update={"runtime": runtime})
    target = subject.tokenizers[1]
    build = imported(OTHER_ENGINES[OTHER].build)
    engine: Any = build(subject.model, target, config, subject.explaining_engine)
    if subject.is_forced:
        return _forced(engine.translator, target.vocab_size)
    return _counting(engine)


def _forced(translator: Any, vocabulary_size: int) -> Translate:
    """CTranslate2 with forced lengths: it has one length for all translations of a batch, so it takes the mean."""

    def translate(requests: Sequence[Request], options: DecodingConfig) -> int:
        num_tokens = 0
        batches = length_batches(
            requests,
            lambda request: len(request.ids),
            max_tokens=options.batch_tokens,
            max_items=max(1, MAX_LOGITS // (options.beam_size * vocabulary_size)),
        )
        for batch in batches:
            length = round(sum(len(request.ids) for request in batch) / len(batch))
            results = translator.translate_batch(
                [[str(token) for token in request.ids] for request in batch],
                beam_size=options.beam_size,
                max_input_length=0,
                min_decoding_length=length,
                max_decoding_length=length,
            )
            num_tokens += sum(len(result.hypotheses[0]) for result in results)
        return num_tokens

    return translate
