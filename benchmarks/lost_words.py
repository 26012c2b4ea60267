"""How often another hypothesis of the beam has a word that the best one has lost, what that gives, and what it costs.

    python benchmarks/lost_words.py --run docs/demonstration --source test.en --reference test.fr

Each sentence is searched once, as one part, without the other repairs. Printed are the sentences whose translation changes, with
their references, the mean chrF of these sentences before and after, and the CPU seconds beside those of the search; all of it again
for those sentences whose first translation has a chrF above 70, which are mostly right.
"""

import argparse
import sys
import time
from pathlib import Path
from statistics import mean

from sacrebleu.metrics.chrf import CHRF

from transformer_cli.decoding.checks.omissions import fuller_hypotheses
from transformer_cli.decoding.engine import ExplainingEngine, Request
from transformer_cli.decoding.loading import load_run

_CLEAN = 70.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True, help="folder of a run")
    parser.add_argument("--source", type=Path, required=True, help="a sentence a line")
    parser.add_argument("--reference", type=Path, required=True, help="its translations")
    parser.add_argument("--to", help="the target language, of a run with several")
    arguments = parser.parse_args()
    translator = load_run(arguments.run, ["runtime.threads=1"]).translator
    if arguments.to:
        translator = translator.towards(arguments.to, None)
    pipeline, engine = translator.pipeline, translator.engine
    if not isinstance(engine, ExplainingEngine):
        raise SystemExit("this engine gives no probabilities of given translations")
    options = translator.decoding.model_copy(update={"num_best": translator.decoding.beam_size})
    sources, references = (
        path.read_text(encoding="utf-8").splitlines() for path in (arguments.source, arguments.reference)
    )
    pairs = {
        Request(pipeline.source_ids(source)): (source, reference)
        for source, reference in zip(sources, references, strict=True)
    }
    metric, write = CHRF(), pipeline.target_tokenizer.decode
    translator.search_with(list(pairs)[:50], options)  # what is loaded once does not count

    def report(requests: list[Request], *, shows: bool) -> dict[Request, float]:
        start = time.process_time()
        found = dict(zip(requests, translator.search_with(requests, options), strict=True))
        of_search = time.process_time() - start
        start = time.process_time()
        changed = fuller_hypotheses(pipeline, engine, found, options)
        of_words = time.process_time() - start
        scores = {
            request: metric.sentence_score(write(of_one[0].ids) if of_one else "", [pairs[request][1]]).score
            for request, of_one in found.items()
        }
        after = [metric.sentence_score(write(changed[one].ids), [pairs[one][1]]).score for one in changed]
        for one in changed if shows else ():
            texts = (*pairs[one][:1], write(found[one][0].ids), write(changed[one].ids), pairs[one][1])
            sys.stdout.write(" | ".join(texts) + "\n")
        of_changed = (
            f", chrF {mean(scores[one] for one in changed):.1f} before, {mean(after):.1f} after" if changed else ""
        )
        sys.stdout.write(
            f"{len(requests):,} sentences, {len(changed)} changed{of_changed}; "
            f"CPU seconds: search {of_search:.2f}, lost words {of_words:.2f}\n"
        )
        return scores

    scores = report(list(pairs), shows=True)
    report([one for one, score in scores.items() if score > _CLEAN], shows=False)


if __name__ == "__main__":
    main()
