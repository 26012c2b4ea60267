"""Shows how many sentences with a word that training has not seen are green, and whether clean text stays green.

    python benchmarks/never_seen_words.py --run docs/run
    python benchmarks/never_seen_words.py --run docs/run --without-corpus     # the rule for runs that recorded no words

In 200 sentences of the test split, the last noun is replaced by an English noun that the training text lacks. The run is
calibrated on one half of the test split, and the other half is translated, clean and with the new words; 20 times with other
halves, as `benchmarks/promise_of_green.py` does. Printed: the share of green with and without the check of words, and in how many
splits the promise is broken on clean text.
"""

import argparse
import random
import re
import statistics
from collections import Counter
from dataclasses import replace
from itertools import cycle

from transformer_cli.data.preparation import seen_words_of_corpus
from transformer_cli.decoding import Translation
from transformer_cli.decoding.checks.doubts import UNSEEN, without_unseen_words
from transformer_cli.decoding.checks.quality import Quality, QualityPromise
from transformer_cli.decoding.loading import load_run
from transformer_cli.evaluation.green import calibrated
from transformer_cli.evaluation.held_out_text import pairs_of_split
from transformer_cli.evaluation.metrics import measure_corpus
from transformer_cli.text.seen_words import SeenWords, WordsOfOneToken, folded, word_pattern

NOUNS = [
    "quokka",
    "hedgehog",
    "wrench",
    "lantern",
    "turnip",
    "squirrel",
    "pillow",
    "harbour",
    "blizzard",
    "cactus",
    "dungeon",
    "ferret",
    "goblin",
    "hammock",
    "igloo",
    "jigsaw",
    "kettle",
    "lobster",
    "magnet",
    "otter",
    "pebble",
    "quilt",
    "raccoon",
    "sculpture",
    "trumpet",
    "vulture",
    "walnut",
    "yacht",
    "zeppelin",
    "anchor",
    "beetle",
    "drawer",
    "emerald",
    "fountain",
    "helmet",
    "acorn",
    "badger",
    "barrel",
    "beaver",
    "bramble",
    "bucket",
    "buffalo",
    "canyon",
    "carpet",
    "castle",
    "chimney",
    "cobweb",
    "compass",
    "coral",
    "cradle",
    "crane",
    "cucumber",
    "dagger",
    "dolphin",
    "donkey",
    "dragon",
    "eagle",
    "falcon",
    "feather",
    "fiddle",
    "flute",
    "frog",
    "funnel",
    "galaxy",
    "garlic",
    "glacier",
    "goose",
    "grasshopper",
    "hamster",
    "harp",
    "hinge",
    "hornet",
    "iceberg",
    "jackal",
    "jellyfish",
    "ladle",
    "lark",
    "leopard",
    "lizard",
    "mango",
    "marble",
    "meadow",
    "mole",
    "moth",
    "mushroom",
    "needle",
    "nettle",
    "oar",
    "orchard",
    "ostrich",
    "owl",
    "parrot",
    "parsnip",
    "peacock",
    "pelican",
    "pigeon",
    "plough",
    "pulley",
    "puppet",
    "radish",
    "raft",
    "raven",
    "reindeer",
    "rhubarb",
    "saddle",
    "sapphire",
    "scarecrow",
    "seahorse",
    "shovel",
    "sparrow",
    "spider",
    "spinach",
    "sponge",
    "starfish",
    "stove",
    "swan",
    "tadpole",
    "thimble",
    "thorn",
    "tiger",
    "toad",
    "tortoise",
    "tractor",
    "trout",
    "tulip",
    "tusk",
    "vase",
    "velvet",
    "viper",
    "violin",
    "wasp",
    "whale",
    "whistle",
    "wizard",
    "wolf",
    "yak",
    "zebra",
    "zucchini",
    "abacus",
    "almond",
    "armadillo",
    "axle",
    "bagpipe",
]
_LAST_NOUN = re.compile(r"\b(the|a|my|your|this|that|her|his|our|their) ([a-z]{3,})(?=[.?!]?$)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", default="docs/run")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--without-corpus", action="store_true")
    options = parser.parse_args()
    loaded = load_run(options.run, [], command="validate")
    translator = replace(loaded.translator, estimates=True, num_samples=options.samples, reports_lines=False)
    pairs = pairs_of_split(loaded, "test")
    pipeline, words = translator.pipeline, None
    corpus = pipeline.seen_words or seen_words_of_corpus(loaded.config)
    assert corpus is not None
    seen = corpus
    if options.without_corpus:
        counts: Counter[str] = Counter()
        for pair in pairs:
            counts.update(set(map(folded, word_pattern("en").findall(pair.source))))
        words = SeenWords.of(counts)
        seen = WordsOfOneToken(SeenWords.of(counts, least=2), pipeline.source_tokenizer)
    translator = replace(translator, pipeline=replace(pipeline, qualities={}, seen_words=seen))
    clean = list(translator.translate([pair.source for pair in pairs]))
    [measured] = measure_corpus([one.text for one in clean], [pair.target for pair in pairs], ["chrf"])
    scores = [measured.value([place]) for place in range(len(pairs))]
    nouns = cycle(noun for noun in NOUNS if noun not in corpus)
    places = [place for place, pair in enumerate(pairs) if _LAST_NOUN.search(pair.source)]
    random.Random(1).shuffle(places)
    changed = {place: _LAST_NOUN.sub(rf"\1 {next(nouns)}", pairs[place].source) for place in places[:200]}
    guessed = dict(zip(changed, translator.translate(changed.values()), strict=True))
    num_new = sum(noun not in corpus for noun in NOUNS)
    say(f"{len(changed)} sentences with one of {num_new} nouns that the training text lacks, such as:")
    for place in [*changed][:3]:
        say(f"  {guessed[place].source} -> {guessed[place].text}")
    promise = QualityPromise("chrf", 60.0, 0.05, 0.95)
    named = sum(any(doubt.startswith(UNSEEN) for doubt in one.doubts) for one in guessed.values())
    say(f"named by a doubt: {named} of {len(guessed)}; of {len(clean)} clean sentences: {sum(map(has_unseen, clean))}")
    for checks in (False, True):
        rows = clean if checks else list(map(without_check, clean))
        new = guessed if checks else {place: without_check(one) for place, one in guessed.items()}
        broken, of_clean, of_new = 0, [], []
        for seed in range(options.splits):
            order = list(range(len(rows)))
            random.Random(1000 + seed).shuffle(order)
            first, second = order[: len(rows) // 2], order[len(rows) // 2 :]
            found = calibrated(
                [rows[place] for place in first],
                [scores[place] for place in first],
                promise,
                conditions={},
                num_samples=options.samples,
                words=words,
            )
            assert found is not None
            green = [place for place in second if is_green(found.quality, rows[place])]
            broken += sum(scores[place] < promise.below for place in green) > promise.share * len(green)
            of_clean.append(len(green) / len(second))
            asked = [place for place in second if place in new]
            of_new.append(sum(is_green(found.quality, new[place]) for place in asked) / len(asked))
        say(
            f"{'with' if checks else 'without'} the check: green of clean text {statistics.mean(of_clean):.1%}, promise broken in "
            f"{broken} of {options.splits} splits; green of the sentences with a new word {statistics.mean(of_new):.1%}"
        )


def has_unseen(translation: Translation) -> bool:
    return any(doubt.startswith(UNSEEN) for doubt in translation.doubts)


def without_check(translation: Translation) -> Translation:
    return replace(translation, doubts=without_unseen_words(translation.doubts))


def is_green(quality: Quality, translation: Translation) -> bool:
    if quality.unseen_words_are_green:
        translation = without_check(translation)
    estimate = quality.estimate(translation)
    return estimate is not None and estimate.is_green


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
