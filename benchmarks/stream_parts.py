"""What each of several processes reads of a streamed corpus, without and with `data.stream_parts`.

    OMP_NUM_THREADS=1 python benchmarks/stream_parts.py --processes 8

It writes pairs of random words into as many files as there are processes, and prepares the first pairs. Then it makes
the batches of rank 0 until all processes together have used the corpus once, in turns with one part and with a part for
each process. It prints CPU seconds of this process: reading, cleaning, encoding and batching, without any training.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from preparation import config_of, write_corpus

from transformer_cli.config import Config
from transformer_cli.data.order import UpdateSize, epoch_order
from transformer_cli.data.preparation import PreparedData, prepare_data
from transformer_cli.data.streaming import open_stream
from transformer_cli.data.updates import Share


def seconds_of_a_share(config: Config, data: PreparedData, num_processes: int, num_updates: int) -> float:
    """CPU seconds in which rank 0 gets the batches of so many updates."""
    order = epoch_order(data.train.lengths, data.train.corpus_sizes, config)
    size = UpdateSize(num_processes)
    before = time.process_time()
    share = Share(0, num_processes)
    with open_stream(config, data.tokenizers, order, size=size, share=share) as own:
        for _ in range(num_updates):
            next(own)
        return time.process_time() - before


def main() -> None:
    """Measure, and print one line for each number of parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, num_processes = Path(name), arguments.processes
        write_corpus(folder / "held-out.tsv", 100)
        for number in range(num_processes):
            write_corpus(folder / f"train-{number}.tsv", arguments.pairs // num_processes)
        given = config_of(folder, argparse.Namespace(updates=1, streaming=True)).model_dump()
        given["data"]["corpora"][0]["path"] = "train-*.tsv"
        given["data"]["tokenizer_pairs"] = 20_000
        given["training"]["accumulate"] = num_processes
        configs = {}
        for num_parts in (1, num_processes):
            given["data"]["stream_parts"] = num_parts
            configs[num_parts] = Config.model_validate(given)
        data = prepare_data(configs[1], folder / "data")
        # A pair has 11.5 words and [EOS] on average, here some 1.4 subwords for each word.
        num_updates = arguments.pairs * 17 // (2048 * num_processes)
        seconds: dict[int, list[float]] = {num_parts: [] for num_parts in configs}
        for _ in range(arguments.rounds):
            for num_parts, config in configs.items():
                spent = seconds_of_a_share(config, data, num_processes, num_updates)
                seconds[num_parts].append(spent)
    sys.stdout.write(f"rank 0 of {num_processes}, {num_updates:,} updates, CPU seconds\n")
    for num_parts, times in seconds.items():
        median = statistics.median(times)
        sys.stdout.write(f"data.stream_parts: {num_parts:<4}{median:>8.1f}  ({min(times):.1f} to {max(times):.1f})\n")


if __name__ == "__main__":
    main()
