"""How often the words of a sentence occur in the sources that a model was trained on."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.config import Config
from transformer_cli.data.encoded import EncodedCorpus
from transformer_cli.data.preparation import TRAIN, num_corpora
from transformer_cli.decoding import TextPipeline


def training_sources(config: Config, checkpoint: Path) -> EncodedCorpus | None:
    """The prepared training pairs of a run; None if they are not there, or are only a part of the corpus.

    Args:
        checkpoint: the folder of the checkpoint, in the folder of its run or elsewhere.
    """
    run = RunFolder.of_checkpoint(checkpoint)
    is_streamed = bool(getattr(config.data, "streaming", False))
    if run is None or is_streamed or not (run.data_folder / TRAIN).is_file():
        return None
    return EncodedCorpus.open(run.data_folder / TRAIN, num_corpora=num_corpora(config))


def rarest_word_frequencies(
    pipeline: TextPipeline, texts: Sequence[str], training: EncodedCorpus
) -> list[int]:
    """For each source text, how often its rarest word or mark occurs in the training sources; 0 for a blank text.

    A word that is not in the vocabulary of a tokenizer of whole words has the frequency 0.

    Args:
        pipeline: its source tokenizer has encoded the training pairs.
        texts: sources, not normalised.
    """
    words = [_words(pipeline, pipeline.normalize_source(text)) for text in texts]
    sought = {word for of_text in words for word in of_text}
    counts: Counter[str] = Counter()
    decode = pipeline.source_tokenizer.decode
    for index in range(len(training)):
        text = decode(map(int, training[index].source_ids))
        counts.update(word for word in _words(pipeline, text) if word in sought)
    return [min((counts[word] for word in of_text), default=0) for of_text in words]


def _words(pipeline: TextPipeline, text: str) -> list[str]:
    return [word for word in map(str.strip, pipeline.source_tokenizer.words(text)) if word]
