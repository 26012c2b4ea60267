"""`tfm shortlist`: the table of probable translations with which `decoding.shortlist` restricts the output layer."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.commands.command_line import JsonOption, RunOption
from transformer_cli.commands.output import show
from transformer_cli.config.decoding import ShortlistConfig
from transformer_cli.config.loading import load_stored_config
from transformer_cli.data.pairs import read_validation_pairs
from transformer_cli.data.sources.corpus import local_files
from transformer_cli.process.errors import MissingInputError, UsageError
from transformer_cli.process.messages import for_shell
from transformer_cli.storage import replace_file, require_place

if TYPE_CHECKING:
    from transformer_cli.data.encoded import EncodedCorpus
    from transformer_cli.decoding.loading import LoadedRun
    from transformer_cli.decoding.shortlist import Shortlist

MOST_PAIRS = 500_000
"""Training pairs that are read, unless another number is given."""
NUM_COMPARED = 200
"""Validation sentences that are translated with and without the shortlist."""


def shortlist_command(
    run: RunOption = None,
    pairs: Annotated[int, typer.Option("--pairs", min=1, help="Read at most so many training pairs.")] = MOST_PAIRS,
    as_json: JsonOption = False,
) -> None:
    """Learn which target tokens a sentence may need, for faster translation with decoding.shortlist. Say what it costs."""
    facts = learned_shortlist(run, pairs)
    lines = [f"{name.replace('_', ' '):<32}{_shown(value)}" for name, value in facts.items()]
    folder = Path(facts["shortlist"]).parent
    use = f"use it: tfm translate --run {for_shell(folder)} --set decoding.shortlist={{}}"
    show(facts, [*lines, use], as_json=as_json)


def learned_shortlist(run: str | None, pairs: int = MOST_PAIRS) -> dict[str, Any]:
    """Write the shortlist of a run into its folder; what it is, and what it does to validation sentences.

    Args:
        run: its name; None: the run that saved last.
        pairs: at most so many training pairs are read.

    Raises:
        UsageError: the run has no training pairs.
        MissingInputError: their file is gone.
        CannotCreateError: the folder of the run may not be written.
    """
    from transformer_cli.data.lexical_translations import learn_lexicon
    from transformer_cli.decoding.loading import load_run
    from transformer_cli.decoding.shortlist import (
        MOST_BEST,
        load_shortlist,
        shortlist_content,
        shortlist_path,
    )

    on_cpu = ["runtime.device=cpu", "decoding.engine=torch", "decoding.shortlist=null"]
    loaded = load_run(run, on_cpu)
    trained = loaded.trained
    tokenizers = trained.tokenizers
    path = shortlist_path(trained.folder)
    require_place(path)
    train = _training_pairs(loaded)
    started_at = time.perf_counter()
    sizes = tokenizers[0].vocab_size, tokenizers[1].vocab_size
    lexicon = learn_lexicon(train, sizes, num_best=MOST_BEST, max_pairs=pairs)
    learning_seconds = time.perf_counter() - started_at
    content = shortlist_content(*lexicon[:3], tokenizers)
    replace_file(path, content)
    settings = trained.config.decoding.shortlist or ShortlistConfig()
    return {
        "shortlist": str(path),
        "training_pairs": lexicon.num_pairs,
        "learning_seconds": round(learning_seconds, 1),
        "target_vocabulary": sizes[1],
        **_compared(loaded, load_shortlist(path, settings, tokenizers)),
    }


def _training_pairs(loaded: "LoadedRun") -> "EncodedCorpus":
    """The training pairs of a run as token ids."""
    from transformer_cli.data.encoded import EncodedCorpus
    from transformer_cli.data.preparation import TRAIN, num_corpora

    run = RunFolder.containing(loaded.trained.folder)
    if run is None:
        raise UsageError(
            f"{loaded.trained.folder}: a shortlist is learned from the training pairs of a run, and this checkpoint lies in none",
            hint="make it in the run folder, and copy shortlist.npz beside the checkpoint as CHECKPOINT.shortlist.npz",
        )
    path = run.data_folder / TRAIN
    if not path.is_file():
        raise MissingInputError(
            f"{path}: no such file; a shortlist is learned from the training pairs",
            hint=_hint_without_pairs(loaded, run),
        )
    train = EncodedCorpus.open(path, num_corpora=num_corpora(loaded.config, with_reversed=False))
    if not len(train):
        raise UsageError(f"{path}: no training pair")
    return train


def _hint_without_pairs(loaded: "LoadedRun", run: "RunFolder") -> str:
    """What to do where the prepared pairs are not there: the corpus may be there, or on another machine."""
    from transformer_cli.decoding.shortlist import shortlist_path
    from transformer_cli.evaluation.held_out_text import whose_data_are_missing

    try:
        local_files(load_stored_config(run.config_file).data)
    except MissingInputError:
        where = shortlist_path(loaded.trained.folder)
        return (
            f"{whose_data_are_missing(loaded)}; make the shortlist where this run was trained, and copy it to {where}"
        )
    return "tfm train of this run prepares its data again"


def _compared(loaded: "LoadedRun", shortlist: "Shortlist") -> dict[str, Any]:
    """What the shortlist does to the validation sentences: candidates, references within it, and other translations."""
    from transformer_cli.data.preparation import VALIDATION
    from transformer_cli.decoding.pytorch_engine import PyTorchEngine

    run = RunFolder.containing(loaded.trained.folder)
    path = Path() if run is None else run.data_folder / VALIDATION
    pairs = read_validation_pairs(path) if path.is_file() else []
    pairs = [pair for pair in pairs if pair.direction == 0][:NUM_COMPARED]
    translator = loaded.translator
    engine, pipeline = translator.engine, translator.pipeline
    assert isinstance(engine, PyTorchEngine)
    if not pairs:
        return {"validation_sentences": 0}
    num_candidates = num_tokens = num_covered = 0
    for pair in pairs:
        candidates = shortlist.of(pipeline.source_ids(pipeline.normalize_source(pair.source)))
        needed = pipeline.target_ids(pipeline.normalize_target(pair.target))
        num_candidates += len(candidates)
        num_tokens += len(needed)
        num_covered += len([one for one in needed if one in set(candidates.tolist())])
    both = []
    sources = [pair.source for pair in pairs]
    for used in (None, shortlist):
        changed = replace(translator, engine=replace(engine, shortlist=used), reports_lines=False)
        both.append([one.text for one in changed.translate(sources)])
    num_differing = sum(one != other for one, other in zip(*both, strict=True))
    return {
        "candidates_per_sentence": round(num_candidates / len(pairs), 1),
        "reference_tokens_covered": round(num_covered / max(1, num_tokens), 4),
        "validation_sentences": len(pairs),
        "translated_otherwise": num_differing,
    }


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
