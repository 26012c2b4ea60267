"""The cache of a server."""

from transformer_cli.extensions.serving.batcher import ResultCache, key_of


def test_the_least_recently_used_results_are_dropped_when_memory_is_full() -> None:
    cache = ResultCache(max_bytes=4000)
    keys = [key_of(b"model", (number,)) for number in range(4)]
    for number, key in enumerate(keys[:3]):
        cache.put(key, number, 900)
    assert cache.get(keys[0]) == 0
    cache.put(keys[3], 3, 900)
    assert [cache.get(key) for key in keys] == [0, None, 2, 3]
    assert cache.num_bytes <= 4000
    assert (cache.num_hits, cache.num_misses) == (4, 1)


def test_a_result_that_is_put_again_takes_its_memory_once() -> None:
    cache = ResultCache(max_bytes=4000)
    for _ in range(10):
        cache.put(b"key", "result", 1000)
    assert len(cache) == 1
    assert cache.num_bytes < 2000


def test_a_result_larger_than_the_cache_is_not_kept() -> None:
    cache = ResultCache(max_bytes=100)
    cache.put(b"key", "result", 1000)
    assert cache.get(b"key") is None
    assert cache.num_bytes == 0


def test_keys_differ_if_anything_that_matters_differs() -> None:
    keys = [
        key_of(b"model", ((1, 2), (), (), 0)),
        key_of(b"other", ((1, 2), (), (), 0)),
        key_of(b"model", ((1,), (2,), (), 0)),
        key_of(b"model", ((1, 2), (), (), 1)),
        key_of(b"model", ((12,), (), (), 0)),
    ]
    assert len(set(keys)) == len(keys)
