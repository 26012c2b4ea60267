"""Corpora that models write: the text to translate, its n best translations, the choice among them, their word alignment.

`tfm student`, `tfm data back-translate` and `tfm data diversify` work in a folder of plain text files. Each step writes files
that appear whole, or grow so that a process that was killed at any moment is continued with the same result. `steps.jsonl`
in the folder says which steps are done, under which conditions, and what they cost.
"""

import hashlib
import logging
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeVar

from transformer_cli.commands.input_lines import check_input, opened_lines
from transformer_cli.commands.recorded_steps import (
    ONLY,
    Cost,
    Languages,
    Steps,
    digest_of_file,
    digest_of_run,
)
from transformer_cli.commands.translate_lines import TranslateOptions, translate_lines
from transformer_cli.commands.unfinished_output import opened_unfinished
from transformer_cli.config import Config, FilesData, HubData, to_yaml
from transformer_cli.config.data import Direction, NoiseConfig
from transformer_cli.config.decoding import WINDOW_LINES
from transformer_cli.config.loading import check_settings, parse_yaml
from transformer_cli.data.pairs import CleaningReport, SentencePair
from transformer_cli.data.selection import all_held_out_pairs, clean, held_out_digests
from transformer_cli.data.sources.corpus import read_pairs
from transformer_cli.decoding.details import pharaoh
from transformer_cli.decoding.given_pairs import PairAligner, pair_likelihoods
from transformer_cli.decoding.loading import LoadedRun, load_run
from transformer_cli.evaluation.metrics import measure_corpus
from transformer_cli.process.errors import DataError, UsageError
from transformer_cli.storage import replace_file
from transformer_cli.text.normalization import compose
from transformer_cli.text.sampling import with_noise

logger = logging.getLogger(__name__)

T = TypeVar("T")

CTRANSLATE2_TEACHER = "transformer_cli.extensions.exchange.ctranslate2_teacher:CTranslate2Teacher"
"""Reads a folder of CTranslate2; imported when a teacher is one."""

UNREADABLE = "\ufffd"
"""Stands in a line for bytes that are not UTF-8."""

# The real pairs, and text of one language.


class RealPairs(NamedTuple):
    """The corpus of a config in a folder of text files."""

    config: Config
    num_pairs: int
    held_out: dict[str, list[SentencePair]]
    """Split -> pairs."""


def one_direction(config: Config) -> Direction:
    """The direction of a config.

    Raises:
        UsageError: it has several.
    """
    if len(config.data.directions) > 1:
        raise UsageError(
            "one direction of translation is expected, and this config has more",
            hint="leave out data.both_directions, and corpora of other languages",
        )
    return config.data.directions[0]


def write_real_pairs(config: Config, folder: Path, steps: Steps) -> RealPairs:
    """Write the cleaned training pairs of a config, and its held-out pairs, as text files; one file pair for each corpus.

    Raises:
        UsageError: the folder holds another corpus; or the config has several directions.
    """
    one_direction(config)
    held_out = all_held_out_pairs(config)
    pairs = list(
        clean(
            read_pairs(config.data, "train", seed=config.seed),
            config.applied_cleaning,
            CleaningReport(),
            held_out=held_out_digests(config, held_out),
        )
    )
    splits = {str(split): found.pairs for split, found in held_out.items() if found.pairs}
    by_name = {real_corpus_name(number): found for number, found in _by_corpus(pairs).items()} | splits
    texts = dict[str, bytes]()
    for name, named_pairs in by_name.items():
        texts[f"{name}.source"] = bytes_of_lines(pair.source for pair in named_pairs)
        texts[f"{name}.target"] = bytes_of_lines(pair.target for pair in named_pairs)
    conditions = {name: hashlib.sha256(content).hexdigest() for name, content in texts.items()}

    def write() -> dict[str, Any]:
        for name, content in texts.items():
            replace_file(folder / name, content)
        return {"pairs": len(pairs)}

    steps.run("corpus", conditions, [folder / name for name in texts], write, is_fixed=True)
    return RealPairs(config, len(pairs), splits)


def real_corpus_name(number: int) -> str:
    """The beginning of the names of the files of a corpus of the config."""
    return f"real-{number}"


def _by_corpus(pairs: Iterable[SentencePair]) -> dict[int, list[SentencePair]]:
    found: dict[int, list[SentencePair]] = {}
    for pair in pairs:
        found.setdefault(pair.corpus, []).append(pair)
    return dict(sorted(found.items()))


def real_names(folder: Path) -> list[str]:
    """The beginnings of the names of the files that hold the real training pairs, in the order of the corpora."""
    return [path.stem for path in sorted(folder.glob("real-*.source"), key=_number)]


def real_entries(real: RealPairs, folder: Path) -> list[dict[str, Any]]:
    """The entries of `data.corpora` for the real training pairs, with weight, tag, origin and licence as in the config."""
    data = real.config.data
    entries = []
    for name in real_names(folder):
        number, given = int(name.removeprefix("real-")), dict[str, Any]()
        if isinstance(data, FilesData | HubData):
            kept = {"weight", "tag", "license"}
            given = data.corpora[number].model_dump(include=kept, exclude_none=True, exclude_defaults=True)
        given["origin"] = origin_of_corpus(real.config, number)
        names = {"source_path": f"{name}.source", "target_path": f"{name}.target"}
        entries.append({"split": "train", **names, **given})
    return entries


def _number(path: Path) -> int:
    return int(path.stem.removeprefix("real-"))


def origin_of_corpus(config: Config, number: int) -> str:
    """In words, which corpus of the config it is."""
    data = config.data
    if not isinstance(data, FilesData | HubData):
        return f"{data.source} of tfm"
    corpus = data.corpora[number]
    if corpus.origin is not None:
        return corpus.origin
    facts = corpus.model_dump(exclude_none=True)
    names = ("path", "source_path", "target_path", "dataset", "config")
    return " / ".join(Path(str(facts[name])).name for name in names if name in facts)


def license_of_corpus(config: Config, number: int) -> str | None:
    """The licence that the config states for a corpus; None: it states none."""
    data = config.data
    return data.corpora[number].license if isinstance(data, FilesData | HubData) else None


def held_out_entries(real: RealPairs) -> list[dict[str, Any]]:
    """The entries of `data.corpora` for the held-out pairs."""
    return [
        {"split": split, "source_path": f"{split}.source", "target_path": f"{split}.target"} for split in real.held_out
    ]


def bytes_of_lines(texts: Iterable[str]) -> bytes:
    """One text a line; line breaks inside a text become spaces."""
    return "".join(f"{' '.join(text.splitlines())}\n" for text in texts).encode()


def lines_of_text_file(path: Path) -> list[str]:
    """The lines of a text file, which may be compressed; bytes that are not UTF-8 become U+FFFD."""
    check_input(path)
    with opened_lines(path, warns=False) as windows:
        return [line.removesuffix("\r") for line in chain.from_iterable(windows)]


class GivenText(NamedTuple):
    """A file of text of one language, and its licence."""

    path: Path
    license: str | None


def given_text(option: str) -> GivenText:
    """`FILE` or `FILE=LICENCE`, as `--text` gives it.

    Raises:
        MissingInputError: there is no such file.
    """
    name, sign, license_ = option.rpartition("=")
    text = GivenText(Path(name), license_) if sign and not Path(option).exists() else GivenText(Path(option), None)
    check_input(text.path, "--text")
    return text


def new_sentences(
    texts: Iterable[GivenText], known: Iterable[str], held_out: Iterable[str], *, max_words: int
) -> list[list[str]]:
    """The lines of each file that are new: blank, repeated, too long and unreadable lines are left out, as are known and held-out ones.

    Two lines count as the same if only letter case, spaces or punctuation differ.

    Args:
        known: what is translated anyway.
        held_out: what must not be seen in training.
        max_words: longer lines are left out.
    """
    is_held_out = {_essence(one) for one in held_out}
    seen = {_essence(one) for one in known} | is_held_out | {""}
    found, num_held_out = list[list[str]](), 0
    for text in texts:
        kept, num_unreadable = list[str](), 0
        for line in map(str.strip, lines_of_text_file(text.path)):
            if UNREADABLE in line:
                num_unreadable += 1
                continue
            essence = _essence(line)
            num_held_out += essence in is_held_out
            if essence in seen or len(line.split()) > max_words:
                continue
            seen.add(essence)
            kept.append(line)
        logger.info("%s: %d new sentences", text.path, len(kept))
        if num_unreadable:
            logger.warning(
                "%s: left out, because they are not UTF-8: %d lines; to have them, convert the file first: "
                "iconv -f WINDOWS-1252 -t UTF-8 (or from its other encoding)",
                text.path,
                num_unreadable,
            )
        found.append(kept)
    if num_held_out:
        logger.info("left out, because they are held-out sentences: %d", num_held_out)
    return found


def _essence(text: str) -> str:
    return " ".join(re.findall(r"\w+", compose(text).casefold()))


# The translations.


@dataclass(frozen=True, slots=True)
class Writer:
    """Who translates: trained runs, a folder of CTranslate2, or another program whose file is given."""

    runs: tuple[str, ...] = ()
    """Names or folders; several are an ensemble. One may be a folder of CTranslate2."""
    overrides: tuple[str, ...] = ()
    from_: str | None = None
    to: str | None = None
    file: Path | None = None
    """The translations of another program, instead of `runs`."""
    license: str | None = None
    """Of the model, for the card."""

    @property
    def is_ctranslate2(self) -> bool:
        """Whether it is a folder of CTranslate2, not a run."""
        return len(self.runs) == 1 and (Path(self.runs[0]) / "model.bin").is_file()

    @property
    def is_run(self) -> bool:
        """Whether tfm has its weights, so that it can align words."""
        return bool(self.runs) and not self.is_ctranslate2

    def conditions(self, num_best: int) -> dict[str, Any]:
        """What the translations depend on, beside the text."""
        if self.file is not None:
            return {"translations": digest_of_file(self.file)}
        return {
            "models": [digest_of_run(run) for run in self.runs],
            **self.settings(num_best),
        }

    def settings(self, num_best: int) -> dict[str, Any]:
        """Those of `conditions` that are known before the models are trained."""
        return {
            "n_best": num_best,
            "set": list(self.overrides),
            "from": self.from_,
            "to": self.to,
        }

    def describe(self) -> str:
        """In words, for the record of the corpus."""
        if self.file is not None:
            return f"another program ({self.file.name})"
        if self.is_ctranslate2:
            return f"the CTranslate2 model {Path(self.runs[0]).name}"
        names = [f"{Path(run).name} ({digest_of_run(run)[:8]})" for run in self.runs]
        return " + ".join(names)


def translate_file(
    source: Path,
    output: Path,
    writer: Writer,
    num_best: int,
    steps: Steps,
    *,
    name: str | None = None,
) -> None:
    """Write the n best translations of each line, as `tfm translate --n-best` prints them; continues after an interruption.

    Raises:
        MissingInputError: there is no such run or file.
        DataError: the file of another program has another number of lines.
    """

    def work() -> None:
        if writer.file is not None:
            replace_file(output, _foreign_n_best(writer.file, source))
        elif writer.is_ctranslate2:
            _translate_with_ctranslate2(source, output, Path(writer.runs[0]), num_best)
        else:
            # Repairs search again, which took twice the time; among several candidates, the reference or a model chooses.
            without = ("decoding.repair=false",) if num_best > 1 else ()
            options = TranslateOptions(
                run=list(writer.runs),
                overrides=(*without, *writer.overrides),
                to=writer.to,
                from_=writer.from_,
                num_best=num_best,
                resume=True,
            )
            translate_lines(source, output, options)

    conditions = translated_file_conditions(source, writer, num_best)
    name = name or f"translate {source.stem}"
    steps.run(name, conditions, [output], work, is_fixed=True)


def translated_file_conditions(source: Path, writer: Writer, num_best: int) -> dict[str, Any]:
    """What `translate_file` makes its file from."""
    return {"source": digest_of_file(source), **writer.conditions(num_best)}


class Candidate(NamedTuple):
    """One of the n best translations."""

    score: float
    text: str


_N_BEST_LINE = re.compile(r"(\d+)\t(-?\d+(?:\.\d*)?(?:e[+-]?\d+)?|-?inf|nan)\t(.*)", re.DOTALL)


def read_n_best(path: Path) -> Iterator[list[Candidate]]:
    """The candidates of each source, best first.

    Raises:
        DataError: a line is not rank, tab, score, tab, text.
    """
    candidates = list[Candidate]()
    for number, line in enumerate(lines_of_text_file(path), start=1):
        found = _N_BEST_LINE.fullmatch(line)
        if found is None:
            raise DataError(
                f"{path}:{number}: rank, tab, score, tab, text are expected",
                hint=f"delete {path}, and run the same command again",
            )
        if found[1] == "1" and candidates:
            yield candidates
            candidates = []
        candidates.append(Candidate(float(found[2]), found[3]))
    if candidates:
        yield candidates


_MOSES = re.compile(r"(\d+) \|\|\| ?(.*?) ?\|\|\| (.*)")
_MOSES_HINT = "write: number of the source from 0 ||| translation ||| features ||| score; the numbers rise"


def _foreign_n_best(path: Path, source: Path) -> bytes:
    """The translations of another program: a line each, an n-best list of tfm, or one as Moses and Marian write it."""
    lines, num_sources = lines_of_text_file(path), len(lines_of_text_file(source))
    hint = f"translate {source}: line N of the translations belongs to line N of that file"
    _require_readable(path, lines)
    if lines and _N_BEST_LINE.fullmatch(lines[0]):
        num_found = sum(line.startswith("1\t") for line in lines)
        made = lines
    elif lines and _MOSES.fullmatch(lines[0]):
        made, num_found, ranks = [], 0, dict[int, int]()
        for number, line in enumerate(lines, start=1):
            found = _MOSES.fullmatch(line)
            if found is None or int(found[1]) not in (num_found - 1, num_found):
                raise DataError(
                    f"{path}:{number}: not the next line of an n-best list: {line[:60]!r}",
                    hint=_MOSES_HINT,
                )
            score = _score(found[3])
            if score is None:
                raise DataError(
                    f"{path}:{number}: no finite number where the score is expected: {found[3][-60:]!r}",
                    hint=_MOSES_HINT,
                )
            index = int(found[1])
            num_found = index + 1
            ranks[index] = ranks.get(index, 0) + 1
            made.append(f"{ranks[index]}\t{score:.6f}\t{_plain(found[2])}")
    else:
        num_found = len(lines)
        made = [f"1\t0.000000\t{_plain(line)}" for line in lines]
    if num_found != num_sources:
        raise DataError(f"{path}: translations of {num_found} lines, but {source} has {num_sources}", hint=hint)
    return "".join(f"{line}\n" for line in made).encode()


def _require_readable(path: Path, lines: Sequence[str]) -> None:
    """Refuse lines that are not UTF-8, and in an n-best list of tfm those that are no line of it.

    Raises:
        DataError: with file and line.
    """
    is_n_best = bool(lines) and _N_BEST_LINE.fullmatch(lines[0]) is not None
    for number, line in enumerate(lines, start=1):
        if UNREADABLE in line:
            raise DataError(
                f"{path}:{number}: this line is not UTF-8",
                hint="convert the file, or repair the line",
            )
        found = _N_BEST_LINE.fullmatch(line) if is_n_best else None
        if is_n_best and (found is None or not math.isfinite(float(found[2]))):
            raise DataError(
                f"{path}:{number}: rank, tab, score, tab, text are expected, but found: {line[:60]!r}",
                hint="write an n-best list as tfm translate --n-best does; each score is a finite number",
            )


def _score(fields: str) -> float | None:
    """The score after the translation: the last field, or the second if word alignment follows it; 0 if features are all.

    None: it is no finite number.
    """
    _, *others = (field.strip() for field in fields.split("|||"))
    if not others:
        return 0.0
    for field in (others[-1], others[0]):
        try:
            score = float(field)
        except ValueError:
            continue
        return score if math.isfinite(score) else None
    return None


def _plain(text: str) -> str:
    return text.replace("\t", " ").strip()


def _translate_with_ctranslate2(source: Path, output: Path, folder: Path, num_best: int) -> None:
    teacher = resolve_name(CTRANSLATE2_TEACHER)(folder)
    conditions = {"model": digest_of_file(folder / "model.bin"), "n_best": num_best}
    with opened_unfinished(output, conditions) as unfinished:
        windows = ([(line,) for line in window] for window in _windows(lines_of_text_file(source), WINDOW_LINES))
        for window in unfinished.remaining(windows):
            lines = [
                f"{rank}\t{score:.6f}\t{_plain(text)}\n"
                for candidates in teacher.translate([line for (line,) in window], num_best)
                for rank, (score, text) in enumerate(candidates, start=1)
            ]
            unfinished.write("".join(lines).encode())


def _windows(items: Sequence[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while window := list(islice(remaining, size)):
        yield window


# The choice among the candidates.


@dataclass(frozen=True, slots=True)
class CandidateChoice:
    """How candidates are chosen, and pairs left out."""

    judge: str | None = None
    """A run of the reverse direction: candidates without a reference are judged by its likelihood; None: by their score."""
    dropped_share: float = 0.0
    """So large a share of the pairs is left out: the worst by the same measure."""
    languages: Languages = ONLY
    """In which the judge is used."""

    def conditions(self, n_best: Path) -> dict[str, Any]:
        """What the choice among these candidates depends on."""
        return {
            "n_best": digest_of_file(n_best),
            "judge": None if self.judge is None else digest_of_run(self.judge),
            "drop": self.dropped_share,
        }


class Chosen(NamedTuple):
    """What has been chosen."""

    rows: list[int]
    """The numbers of the sources that are kept, from 0."""
    texts: list[str]
    """Their translations."""


def choose(
    sources: Sequence[str],
    references: Sequence[str],
    candidates: Sequence[Sequence[Candidate]],
    likelihoods: Sequence[Sequence[float]] | None,
    dropped_share: float,
    *,
    language: str | None = None,
) -> Chosen:
    """The best candidate of each source: the most similar to the reference (chrF) where there is one, else by likelihood.

    Args:
        sources: all of them.
        references: of the first sources.
        candidates: of each source, best first.
        likelihoods: log P(source | candidate) per token of the source, of each candidate; None: the first one is the best.
        dropped_share: of the sources with a reference, and of the others, the share with the worst values that is left out.

    Source: Kim and Rush 2016, section 3.3 (sequence-level interpolation chooses what is close to the reference); likelihood of
    the source: Li and Jurafsky 2016; leaving out by it: Junczys-Dowmunt 2018, "Dual Conditional Cross-Entropy Filtering of
    Noisy Parallel Corpora".
    """
    values: list[Sequence[float] | None] = [None] * len(sources)
    num_judged = len(references)
    if num_judged and (dropped_share or any(len(one) > 1 for one in candidates[:num_judged])):
        texts = [one.text for row in candidates[:num_judged] for one in row]
        repeated = [reference for reference, row in zip(references, candidates, strict=False) for _ in row]
        [measured] = measure_corpus(texts, repeated, ["chrf"], target_language=language)
        all_values = iter(measured.value([index]) for index in range(len(texts)))
        for index in range(num_judged):
            values[index] = list(islice(all_values, len(candidates[index])))
    if likelihoods is not None:
        for index in range(num_judged, len(sources)):
            values[index] = likelihoods[index - num_judged]
    best = [0 if value is None else max(range(len(value)), key=value.__getitem__) for value in values]
    dropped = set[int]()
    for group in (range(num_judged), range(num_judged, len(sources))):
        judged = [index for index in group if values[index] is not None]
        judged.sort(key=lambda index: max(values[index] or [0.0]))
        dropped |= {*judged[: int(len(judged) * dropped_share)]}
    rows = [index for index in range(len(sources)) if index not in dropped]
    return Chosen(rows, [candidates[index][best[index]].text for index in rows])


def write_likelihoods(
    sources: Sequence[str],
    candidates: Sequence[Sequence[Candidate]],
    output: Path,
    choice: CandidateChoice,
) -> list[list[float]]:
    """log P(source | candidate) per token, of each candidate, by the judge; also written, and continued after an interruption.

    Args:
        sources: the text whose probability counts.
        candidates: of each of them.
        output: the file of the values; the digest of the judge is added to its name.
        choice: names the judge.
    """
    assert choice.judge is not None
    # Another judge has another file, so that what one has said is never taken for what the other says.
    judge = digest_of_run(choice.judge)
    output = output.with_name(f"{output.stem}-{judge[:8]}{output.suffix}")
    if not output.exists():
        translator = load_run(choice.judge, [], command="likelihood").translator
        translator = translator.towards(*choice.languages)
        pairs = [(one.text, source) for source, row in zip(sources, candidates, strict=True) for one in row]
        conditions = {"judge": judge}
        with opened_unfinished(output, conditions) as unfinished:
            for window in unfinished.remaining(_windows(pairs, WINDOW_LINES)):
                found = pair_likelihoods(translator, window)
                lines = [f"{one.log_probability / max(1, one.num_tokens):.6f}\n" for one in found]
                unfinished.write("".join(lines).encode())
    values = map(float, lines_of_text_file(output))
    return [list(islice(values, len(row))) for row in candidates]


# Word alignment, and noise beside it.


def write_alignments(
    source: Path,
    target: Path,
    output: Path,
    aligner: str | Sequence[str],
    *,
    languages: Languages = ONLY,
) -> None:
    """Write the word alignment of each pair, as a corpus has it (`data.corpora.alignment_path`); continues after an interruption."""
    loaded: LoadedRun = load_run(aligner, [], command="align")
    translator = loaded.translator.towards(*languages)
    engine: Any = translator.engine
    pair_aligner = PairAligner(translator.pipeline, engine, translator.decoding.batch_tokens, counts_words=True)
    pairs = list(zip(lines_of_text_file(source), lines_of_text_file(target), strict=True))
    names = [aligner] if isinstance(aligner, str) else aligner
    conditions = {"aligner": " ".join(map(digest_of_run, names))}
    with opened_unfinished(output, conditions) as unfinished:
        for window in unfinished.remaining(_windows(pairs, WINDOW_LINES)):
            lines = [f"{pharaoh(one.links)}\n" for one in pair_aligner.align(window)]
            unfinished.write("".join(lines).encode())


class NoisyCopy(NamedTuple):
    """Pairs that noise has changed."""

    sources: list[str]
    targets: list[str]
    links: list[str]


def noisy_copy(
    sources: Sequence[str],
    targets: Sequence[str],
    links: Sequence[str],
    noise: NoiseConfig,
    seed: int,
) -> NoisyCopy:
    """The pairs that noise changes, changed, with their links; noise that is drawn in each epoch could not keep the links.

    Args:
        links: Pharaoh lines; a pair whose number of words changes loses its links.
        noise: the probability of each change.
        seed: the same seed gives the same copy.
    """
    found = NoisyCopy([], [], [])
    for number, (source, target, line) in enumerate(zip(sources, targets, links, strict=True)):
        changed = with_noise(source, target, noise, random.Random(f"{seed} {number}"))
        if changed == (source, target):
            continue
        is_word_by_word = [len(one.split()) for one in changed] == [
            len(source.split()),
            len(target.split()),
        ]
        for side, text in zip(found, (*changed, line if is_word_by_word else ""), strict=True):
            side.append(text)
    return found


# The config that reads such a folder.


def config_of_folder(
    config: Config,
    folder: Path,
    corpora: Sequence[Mapping[str, Any]],
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    name: str | None = None,
    is_reversed: bool = False,
) -> Config:
    """A config like the given one that reads the corpora of a folder.

    Args:
        config: of one direction.
        corpora: the entries of `data.corpora`, with paths in the folder.
        changes: further settings, by section and name; None as a value leaves a setting out.
        name: of the run; None: as it is.
        is_reversed: whether the languages change places; the paths of `corpora` have done so.

    Raises:
        ConfigError: settings of the config do not go together with such corpora.
    """
    settings = parse_yaml(to_yaml(config), config.name)
    [direction] = config.data.directions
    if is_reversed:
        direction = direction.reverse
    settings["data"] = {
        "source": "files",
        "root": str(folder),
        "source_language": direction.source,
        "target_language": direction.target,
        "cleaning": settings["data"]["cleaning"],
        "corpora": [dict(one) for one in corpora],
    }
    for section, values in (changes or {}).items():
        for key, value in values.items():
            if value is None:
                settings[section].pop(key, None)
            else:
                settings[section][key] = value
    if name is not None:
        settings["name"] = name
    return check_settings(settings, str(settings["name"]))


def swapped(entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The entries of `data.corpora` for the reverse direction."""
    return [{**one, "source_path": one["target_path"], "target_path": one["source_path"]} for one in entries]


def train_run(settings: Config, steps: Steps) -> None:
    """Train a run, or continue it; a run that is finished stays as it is."""
    from transformer_cli.commands.progress_bar import progress_bars
    from transformer_cli.training.run import train

    # The run says whether it is finished: the step has no record of its own that could contradict it.
    def work() -> None:
        train(settings, callbacks=progress_bars())

    steps.timed(f"train {settings.name}", work)


def write_config(settings: Config, folder: Path) -> Path:
    """Write the config that reads a folder, for `tfm train --config`."""
    path = folder / "config.yaml"
    replace_file(path, to_yaml(settings).encode())
    return path


def cost_lines(costs: Mapping[str, Cost]) -> list[str]:
    """What each step has cost, for people."""
    lines = [f"{'step':<32}{'seconds':>10}{'CPU seconds':>14}"]
    for name, cost in costs.items():
        sign = ">" if cost.is_lower_bound else ""
        lines.append(f"{name:<32}{f'{sign}{cost.seconds:.0f}':>10}{f'{sign}{cost.cpu_seconds:.0f}':>14}")
    return lines
