"""The lexicon of training pairs equals IBM model 1 written from its formulas, or the counts of given links."""

from collections import Counter, defaultdict
from pathlib import Path
from random import Random

import numpy as np
import pytest

from transformer_cli.data import lexical_translations
from transformer_cli.data.encoded import EncodedCorpus, TokenPair, write_encoded
from transformer_cli.data.lexical_translations import learn_lexicon
from transformer_cli.text.token_ids import IdLists

from .encoded_pairs import encoded_pairs

NUM_SOURCES, NUM_TARGETS, EOS = 12, 10, 3


def random_pairs(count: int = 60) -> list[TokenPair]:
    numbers = Random(1)
    pairs = []
    for _ in range(count):
        source = [numbers.randint(4, NUM_SOURCES - 1) for _ in range(numbers.randint(1, 6))]
        target = [4 + (3 * token) % (NUM_TARGETS - 4) for token in source if numbers.random() < 0.8]
        pairs.append(TokenPair([*source, EOS], [*target, EOS]))
    return pairs


def corpus_of(path: Path, pairs: list[TokenPair], links: list[list[int]] | None = None) -> EncodedCorpus:
    encoded = encoded_pairs(pairs, [0] * len(pairs))
    if links is not None:
        encoded = encoded._replace(links=IdLists.of(links))
    write_encoded(path, [encoded], vocab_size=NUM_SOURCES, has_links=links is not None)
    return EncodedCorpus.open(path)


def ibm_model_1(pairs: list[TokenPair], iterations: int) -> dict[tuple[int, int], float]:
    """Expected counts of links, by dictionaries: Brown et al. 1993, equations 12 to 17."""
    probabilities: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    counts: dict[tuple[int, int], float] = {}
    for _ in range(iterations):
        counts = defaultdict(float)
        for source, target in pairs:
            for t in target:
                total = sum(probabilities[s, t] for s in source)
                for s in source:
                    counts[s, t] += probabilities[s, t] / total
        of_sources: dict[int, float] = defaultdict(float)
        for (s, _), count in counts.items():
            of_sources[s] += count
        probabilities = defaultdict(float)
        for (s, t), count in counts.items():
            probabilities[s, t] = count / of_sources[s]
    return counts


def ranked(counts: dict[tuple[int, int], float], source: int, num_best: int) -> list[int]:
    own = [(-round(count, 9), target) for (one, target), count in counts.items() if one == source]
    return [target for _, target in sorted(own)][:num_best]


@pytest.mark.parametrize("kept_cells", [0, 10**6])
@pytest.mark.parametrize("at_once", [7, 5000])
def test_without_links_it_is_ibm_model_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, kept_cells: int
) -> None:
    monkeypatch.setattr(lexical_translations, "_PAIRS_AT_ONCE", at_once)
    monkeypatch.setattr(lexical_translations, "_MOST_CELLS_KEPT", kept_cells)
    pairs = random_pairs()
    found = learn_lexicon(corpus_of(tmp_path / "a", pairs), (NUM_SOURCES, NUM_TARGETS), num_best=4, max_pairs=1000)
    counts = ibm_model_1(pairs, lexical_translations._ITERATIONS)
    for source in range(NUM_SOURCES):
        own = found.translations[found.starts[source] : found.starts[source + 1]].tolist()
        expected = ranked(counts, source, 4)
        assert len(own) == len(expected)
        by_count = [round(counts[source, one], 6) for one in own]
        assert by_count == [round(counts[source, one], 6) for one in expected]
    frequencies = Counter(token for pair in pairs for token in pair.target_ids)
    counted = [frequencies[one] for one in found.by_frequency.tolist()]
    assert counted == sorted(frequencies.values(), reverse=True)
    assert found.num_pairs == len(pairs)


def test_given_links_are_counted(tmp_path: Path) -> None:
    pairs = [
        TokenPair([4, 5, EOS], [6, 7, EOS]),
        TokenPair([4, EOS], [8, EOS]),
        TokenPair([4, EOS], [8, EOS]),
    ]
    links = [[0, 1, 1, 0], [0, 0], []]  # target position, source position
    found = learn_lexicon(corpus_of(tmp_path / "a", pairs, links), (NUM_SOURCES, NUM_TARGETS), num_best=5, max_pairs=9)
    of_source = [found.translations[found.starts[s] : found.starts[s + 1]].tolist() for s in range(12)]
    assert of_source[4] == [7, 8]  # one link each, so the smaller id is first
    assert of_source[5] == [6]
    assert sum(map(len, of_source)) == 3


def test_of_a_large_corpus_some_pairs_are_read_evenly_spread(tmp_path: Path) -> None:
    pairs = [TokenPair([4, EOS], [4, EOS])] * 50 + [TokenPair([5, EOS], [5, EOS])] * 50
    found = learn_lexicon(corpus_of(tmp_path / "a", pairs), (NUM_SOURCES, NUM_TARGETS), num_best=2, max_pairs=10)
    assert found.num_pairs == 10
    assert {4, 5} <= set(found.by_frequency.tolist())
    assert np.array_equal(np.sort(found.starts), found.starts)
