import pytest

from transformer_cli.config import Direction
from transformer_cli.process.errors import UsageError
from transformer_cli.text.languages import chosen_direction

EN_IT, IT_EN = Direction("en", "it"), Direction("it", "en")
EN_DE, FR_DE = Direction("en", "de"), Direction("fr", "de")


def test_the_only_direction_needs_no_choice() -> None:
    assert chosen_direction([EN_IT]) == 0


@pytest.mark.parametrize("to", ["en", "EN", " en ", "English", "inglese"])
def test_a_target_language_is_found_by_its_code_or_name(to: str) -> None:
    assert chosen_direction([EN_IT, IT_EN], to=to) == 1


def test_the_source_language_alone_decides_if_it_has_one_target() -> None:
    assert chosen_direction([EN_IT, IT_EN], from_="it") == 1


def test_several_targets_without_a_choice_are_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match="translates en-it, it-en: say which") as refused:
        chosen_direction([EN_IT, IT_EN])
    assert refused.value.hint == "add --to it or --to en"


def test_several_sources_of_one_target_are_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match="en-de, fr-de: say which") as refused:
        chosen_direction([EN_IT, EN_DE, FR_DE], to="de")
    assert refused.value.hint == "add --from en or --from fr"
    assert chosen_direction([EN_IT, EN_DE, FR_DE], to="de", from_="fr") == 2


@pytest.mark.parametrize("directions", [[EN_IT], [EN_IT, IT_EN]])
def test_an_unknown_language_is_refused_with_those_of_the_model(
    directions: list[Direction],
) -> None:
    targets = ", ".join(direction.target for direction in directions)
    with pytest.raises(UsageError, match=f"--to fr: this model translates into: {targets}\n"):
        chosen_direction(directions, to="fr")


def test_languages_that_no_direction_joins_are_refused() -> None:
    with pytest.raises(UsageError, match="not translate from fr to it; it translates en-it, fr-de"):
        chosen_direction([EN_IT, FR_DE], to="it", from_="fr")


def test_an_empty_language_is_called_empty() -> None:
    for empty in ("", " "):
        with pytest.raises(UsageError, match="--to: the language is empty"):
            chosen_direction([EN_IT], to=empty)
        with pytest.raises(UsageError, match="--from: the language is empty"):
            chosen_direction([EN_IT], from_=empty)
