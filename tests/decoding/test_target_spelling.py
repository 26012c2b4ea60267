"""The spelling of the target language beside placeholders and colons."""

import pytest

from transformer_cli.decoding.target_spelling import with_target_spelling
from transformer_cli.decoding.translation import Alternative, SourceText, Translation


@pytest.mark.parametrize(
    ("target", "source", "translation", "spelled"),
    [
        ("fr", "Tags: {0}", "Mots-clés: {0}", "Mots-clés : {0}"),
        ("fr", "{name}: the dog", "{name}: le chien", "{name} : le chien"),
        ("fr", "Tags:", "Mots-clés :", "Mots-clés :"),
        ("fr", "See http://a.org: it is 10:30", "Voir http://a.org: il est 10:30", "Voir http://a.org : il est 10:30"),
        ("fr", "The drive C: is red", "Le disque C: est rouge", "Le disque C: est rouge"),
        ("fr", "Use :smile: now", "Utilise :smile: maintenant", "Utilise :smile: maintenant"),
        ("fr", "Message-ID: 5", "Message-ID: 5", "Message-ID: 5"),  # it stays as it is
        ("it", "Tags: {0}", "Etichette: {0}", "Etichette: {0}"),
        ("fr", "Step {a} of {b}", "Étape {a} d'{b}", "Étape {a} de {b}"),
        ("fr", "%@ of %@", "D\u2019%@ qu'%@", "De %@ que %@"),
        ("fr", "the {x}, of Anna and example.org", "l'{x}, d'Anna et d'example.org", "l'{x}, d'Anna et d'example.org"),
        ("it", "of {b}", "d'{b}", "di {b}"),
        ("de", "of {b}", "d'{b}", "d'{b}"),
        ("fr", "%{time} ago", "%{time} il y a", "il y a %{time}"),
        ("fr", "It was {time} ago.", "C'était à {time} il y a.", "C'était il y a {time}."),
        ("fr", "{name} was here {n} days ago", "{name} il y a {n} jours", "{name} il y a {n} jours"),
    ],
)
def test_signs_and_placeholders_are_written_as_the_target_language_asks(
    target: str, source: str, translation: str, spelled: str
) -> None:
    given = Translation(source, translation, 0.0, (Alternative(translation, 0.0),))
    found = with_target_spelling(SourceText(source), given, target)
    assert found.text == spelled
    assert with_target_spelling(SourceText(source), found, target).text == spelled
