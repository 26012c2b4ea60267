"""The steps of a long way, such as from a teacher to its student: what each was done from and what it cost, so that the same command goes on."""

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_cli.checkpoint.run_folder import STEPS_FILE
from transformer_cli.checkpoint.trained_files import find_run, first_usable, read_trained_files
from transformer_cli.config.data import Direction
from transformer_cli.process.errors import CannotCreateError, UsageError
from transformer_cli.storage import MANIFEST_NAME, make_folders
from transformer_cli.storage.writing import append_json_line, read_json_lines
from transformer_cli.text.languages import primary_language, scripts_of_language

logger = logging.getLogger(__name__)


class Cost(NamedTuple):
    """What a step has cost, all sessions together."""

    seconds: float
    cpu_seconds: float
    is_lower_bound: bool
    """Whether a session was killed, so that nobody could note its end."""


class Steps:
    """The record of a folder: which steps are done, under which conditions, and what each has cost.

    Raises:
        CannotCreateError: the folder holds other files, which a step could replace, such as a config.yaml or a corpus.
    """

    def __init__(self, folder: Path) -> None:
        make_folders(folder)
        if any(folder.iterdir()) and not (folder / STEPS_FILE).is_file():
            raise CannotCreateError(
                f"{folder}: this folder is not empty, and no earlier command has made it; its files could be replaced",
                hint="name a new folder: --folder",
            )
        self.folder = folder
        self._path = folder / STEPS_FILE
        self._records = list(read_json_lines(self._path))

    def run(
        self,
        name: str,
        conditions: Mapping[str, Any],
        outputs: Sequence[Path],
        work: Callable[[], Mapping[str, Any] | None],
        *,
        is_fixed: bool = False,
    ) -> dict[str, Any]:
        """Do a step, unless it is done already under the same conditions; the facts that it has found.

        Args:
            name: of the step.
            conditions: what the result depends on; plain values by name.
            outputs: the files that it writes; if one is gone, the step is done again.
            work: does it; returns facts for the record.
            is_fixed: whether other conditions are refused, because the step is expensive or its files are another corpus.

        Raises:
            UsageError: the step was done under other conditions, and is fixed.
        """
        conditions = json.loads(json.dumps(conditions))
        before = self._last(name)
        if before is not None and before["conditions"] == conditions:
            if all(path.exists() for path in outputs):
                logger.info("step %s: done already", name)
                return dict(before["facts"])
        elif is_fixed:
            self.check(name, conditions)
        found: dict[str, Any] = {}

        def work_with_facts() -> dict[str, Any]:
            found.update(work() or {})
            return {"conditions": conditions, "facts": found}

        self.timed(name, work_with_facts)
        return found

    def check(self, name: str, conditions: Mapping[str, Any], *, is_partial: bool = False) -> None:
        """Refuse conditions under which a step was not done; a step that was not done yet is not refused.

        Args:
            name: of the step.
            conditions: as of `run`.
            is_partial: whether only these of its conditions are known yet.

        Raises:
            UsageError: it was done under other conditions.
        """
        before = self._last(name)
        if before is None:
            return
        was, given = before["conditions"], json.loads(json.dumps(conditions))
        names = given if is_partial else {**was, **given}
        if changed := [one for one in names if was.get(one) != given.get(one)]:
            raise UsageError(
                f"{self.folder}: the step {name} was done from another corpus or with other options: {', '.join(changed)}",
                hint="give the same options, do the step again, name another --folder, or delete this one",
            )

    def timed(self, name: str, work: Callable[[], Mapping[str, Any] | None]) -> None:
        """Do work and note what it costs, also if it fails.

        Args:
            work: returns what else is noted; None: nothing.
        """
        logger.info("step %s", name)
        self._note({"step": name, "begun": True})
        started, cpu_started = time.perf_counter(), _cpu_seconds()
        more: Mapping[str, Any] | None = None
        try:
            more = work()
        finally:
            cost = {
                "seconds": time.perf_counter() - started,
                "cpu_seconds": _cpu_seconds() - cpu_started,
            }
            self._note({"step": name, "ended": True, **cost, **(more or {})})

    def facts(self, name: str) -> dict[str, Any]:
        """What a step has found; empty if it is not done."""
        last = self._last(name)
        return {} if last is None else dict(last["facts"])

    def costs(self) -> dict[str, Cost]:
        """What each step has cost, in the order in which they began."""
        found: dict[str, Cost] = {}
        open_sessions: dict[str, int] = {}
        for record in self._records:
            name = record["step"]
            cost = found.get(name, Cost(0.0, 0.0, is_lower_bound=False))
            if record.get("begun"):
                open_sessions[name] = open_sessions.get(name, 0) + 1
            else:
                open_sessions[name] = max(0, open_sessions.get(name, 0) - 1)
                cost = Cost(
                    cost.seconds + (record.get("seconds") or 0.0),
                    cost.cpu_seconds + (record.get("cpu_seconds") or 0.0),
                    is_lower_bound=False,
                )
            found[name] = cost
        return {name: cost._replace(is_lower_bound=open_sessions[name] > 0) for name, cost in found.items()}

    def _last(self, name: str) -> dict[str, Any] | None:
        done = [one for one in self._records if one["step"] == name and "conditions" in one]
        return done[-1] if done else None

    def _note(self, record: dict[str, Any]) -> None:
        append_json_line(self._path, record)
        self._records.append(record)


def _cpu_seconds() -> float:
    """Of this process and of the processes that it has waited for."""
    return sum(os.times()[:4])


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file, for conditions."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_run(run: str) -> str:
    """The SHA-256 of the weights that a run translates with, for conditions; a CTranslate2 folder has its own."""
    folder = Path(run)
    if (folder / "model.bin").is_file():
        return digest_of_file(folder / "model.bin")
    files = first_usable(find_run(run), read_trained_files)
    return digest_of_file(files.folder / MANIFEST_NAME)


class Languages(NamedTuple):
    """The direction that is chosen of a run with several; None: it has only one."""

    to: str | None = None
    from_: str | None = None


ONLY = Languages()
"""The only direction of a run."""


def chosen_languages(runs: Iterable[str], needed: Direction, option: str, given: Languages = ONLY) -> Languages:
    """The direction in which runs are used, after a check that it is the needed one.

    Args:
        runs: names or folders; they translate together, or there is only one.
        needed: the direction; region and script of its languages do not count.
        option: names the runs; for the error.
        given: what the user has chosen.

    Raises:
        MissingInputError: there is no such run.
        UsageError: a run does not translate in this direction.
    """
    primary = [primary_language(one) for one in needed]
    for run in runs:
        directions = first_usable(find_run(run), read_trained_files).config.data.directions
        fitting = [
            one
            for one in directions
            if [primary_language(language) for language in one] == primary
            and given.to in (None, one.target)
            and given.from_ in (None, one.source)
        ]
        if not fitting:
            raise UsageError(
                f"{option} {run} translates {', '.join(map(str, directions))}, but {needed} is needed"
                + (", with these --from and --to" if any(given) else ""),
                hint=f"name a run from {needed.source} into {needed.target}",
            )
        if len(directions) > 1 and not any(given):
            given = Languages(fitting[0].target, fitting[0].source)
    return given


# Tags of models of many languages: >>ita<<, __it__ and ita_Latn.
_TAG_OF_LANGUAGE = re.compile(r">>[a-z]{2,3}(?:_[A-Za-z]+)?<<|__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}")
_PAIR_IN_NAME = re.compile(r"(?<![a-z])(?=([a-z]{2,3})[-_]([a-z]{2,3})(?![a-z]))")
_FEWEST_TAGS = 2


def require_direction_of_ctranslate2(folder: Path, needed: Direction, option: str) -> None:
    """Check what a folder of CTranslate2 tells of its languages, which its own files do not name.

    An export of tfm names them, and so does a package of Argos. The vocabulary of a model of many languages has tags, which tfm
    does not write for it. A name such as opus-mt-en-it is only a sign. Where nothing is told, a warning says so.

    Args:
        folder: the model.
        needed: the direction; region and script of its languages do not count.
        option: names the folder; for the message.

    Raises:
        UsageError: the folder is for another direction, or for several.
    """
    named = _named_directions(folder)
    if named:
        if _primary(needed) not in map(_primary, named):
            raise UsageError(
                f"{option} {folder} translates {', '.join(map(str, named))}, but {needed} is needed",
                hint=f"name a model from {needed.source} into {needed.target}",
            )
        return
    if tags := _tags_of_languages(folder):
        raise UsageError(
            f"{option} {folder} is a model of several languages: its vocabulary has {', '.join(tags[:3])}; which one it writes is "
            "said by such a tag, and none is written here",
            hint=f"translate into {needed.target} with a program that writes the tag, and give its file: --translations FILE",
        )
    in_name = [
        Direction(*found)
        for found in _PAIR_IN_NAME.findall(folder.absolute().name.lower())
        if all(map(scripts_of_language, found))
    ]
    if _primary(needed) in map(_primary, in_name):
        return
    reason = f"its name says {in_name[-1]}" if in_name else "nothing in it says which languages it translates"
    logger.warning(
        "%s %s: %s, and %s is needed; look at some of its translations before you train with them",
        option,
        folder,
        reason,
        needed,
    )


def _primary(direction: Direction) -> tuple[str, str]:
    return primary_language(direction.source), primary_language(direction.target)


def _named_directions(folder: Path) -> list[Direction]:
    """The directions that an export of tfm or a package of Argos names."""
    exported = _json_of(folder / "tfm-export.json")
    if isinstance(exported, dict) and isinstance(exported.get("languages"), list):
        return [_direction_of(str(each)) for each in exported["languages"]]
    for package in (folder, folder.absolute().parent):
        found = _json_of(package / "metadata.json")
        if isinstance(found, dict) and {"from_code", "to_code"} <= {*found}:
            return [Direction(str(found["from_code"]), str(found["to_code"]))]
    return []


def _direction_of(name: str) -> Direction:
    """The direction with this name, such as en-zh-Hans: it is divided where both sides are languages."""
    codes = name.split("-")
    ways = [Direction("-".join(codes[:place]), "-".join(codes[place:])) for place in range(1, len(codes))]
    known = [way for way in ways if all(map(scripts_of_language, way))]
    return (known or ways or [Direction(name, "")])[0]


def _tags_of_languages(folder: Path) -> list[str]:
    """The tags of languages in the vocabulary of the source; nothing if there is no more than one."""
    for name in ("source_vocabulary", "shared_vocabulary"):
        path = folder / f"{name}.txt"
        if path.is_file():
            entries: Any = path.read_text(encoding="utf-8", errors="replace").splitlines()
        else:
            entries = _json_of(folder / f"{name}.json")
        if isinstance(entries, list):
            tags = [str(each) for each in entries if _TAG_OF_LANGUAGE.fullmatch(str(each))]
            return tags if len(tags) >= _FEWEST_TAGS else []
    return []


def _json_of(path: Path) -> Any:
    """The content of a JSON file; None if there is none, or it is damaged."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
