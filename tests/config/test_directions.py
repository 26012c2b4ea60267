from typing import Any

import pytest

from transformer_cli.config import Config, Direction
from transformer_cli.config.loading import check_settings
from transformer_cli.process.errors import ConfigError

EN_IT = {"source_path": "a.en", "target_path": "a.it"}


def config(*corpora: dict[str, Any], shared: bool = True, **data: Any) -> Config:
    settings = {
        "name": "languages",
        "data": {"source": "files", "corpora": [EN_IT | one for one in corpora], **data},
        "tokenizer": {"shared": shared},
        "training": {"max_steps": 1, "batch_tokens": 64},
    }
    return check_settings(settings, "languages.yaml")


def test_one_corpus_has_the_direction_of_the_data() -> None:
    assert config({}, target_language="fr").data.directions == (Direction("en", "fr"),)


def test_a_corpus_may_have_languages_of_its_own() -> None:
    data = config({}, {"target_language": "de"}, {"source_language": "de"}, {}).data
    assert list(map(str, data.directions)) == ["en-it", "en-de", "de-it"]
    assert list(map(str, data.directions_of(2))) == ["de-it"]


def test_both_directions_adds_the_reverse_of_each_corpus() -> None:
    data = config({}, {"target_language": "de"}, both_directions=True).data
    assert list(map(str, data.directions)) == ["en-it", "it-en", "en-de", "de-en"]


def test_a_copy_with_other_languages_has_other_directions_and_one_without_is_equal() -> None:
    data = config({}).data
    assert data.directions == (Direction("en", "it"),)
    changed = data.model_copy(update={"target_language": "fr"})
    assert changed.directions == (Direction("en", "fr"),)
    copied = data.model_copy(deep=True)
    assert copied == data  # though it has not been asked for its directions
    assert copied.directions == data.directions
    assert "directions" not in data.model_dump()


def test_a_language_on_both_sides_needs_one_vocabulary() -> None:
    with pytest.raises(
        ConfigError, match=r"en is a source language and also a target language.*one vocabulary"
    ) as refused:
        config({}, shared=False, both_directions=True)
    assert refused.value.hint == "set tokenizer.shared: true"
    assert len(config({}, {"target_language": "de"}, shared=False).data.directions) == 2


def test_both_directions_of_one_language_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"both sides of corpora\.0 are it"):
        config({"source_language": "it"}, both_directions=True)


def test_a_held_out_corpus_must_have_trained_languages() -> None:
    with pytest.raises(ConfigError, match=r"corpora\.1 is for test and translates en-fr.*training corpora.*en-it"):
        config({}, {"split": "test", "target_language": "fr"})
    zero_shot = config(
        {},
        {"source_language": "de", "target_language": "fr"},
        {"split": "test", "target_language": "fr"},
    )
    assert str(zero_shot.data.directions[2]) == "en-fr"
