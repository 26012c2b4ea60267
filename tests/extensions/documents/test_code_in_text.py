"""What stays in the texts of documents beside protected spans: commands, calls, settings, smileys and codes of colours."""

import json

import pytest

from transformer_cli.extensions.documents import format_named, read_document

from .fake_translators import REVERSED, UPPER, Identity, WordByWord, translated


def written(text: str, translator: WordByWord = UPPER) -> str:
    return translated(read_document(text.encode(), format_named("txt")), translator).removesuffix("\n")


@pytest.mark.parametrize(
    "code",
    [
        "tar -czstd",
        "rm -rf",
        "ls -la",
        "wget -q --show-progress",
        "foo(bar, baz)",
        "babel.parse(code: string, options?: Object)",
        "list.slice(0, first_one + 1)",
        "Cat#meow",
        'areas="left+right"',
        "place_type=continent",
        "has[]=photos&has[]=geo",
        "readOnly=auto",
        "STAGE=dev",
        ".ruby-version",
        "CONFIG+=no-opus",
        "{{ folder }}/red_icon.png",
        "og:title",
        "HTTP_HOST:example.test",
        "?month=3&tag=legal",
        "/api/dogs/{dog_id}/cats",
        "/projects/:id/widget.js",
        "/index.json",
        "au-1_smt.a",
        "data-allowReplies",
    ],
)
def test_words_for_programs_take_the_place_of_a_word(code: str) -> None:
    assert written(f"use {code} in the house.") == f"USE {code} IN THE HOUSE."
    assert written(f"use {code} in the house.", REVERSED) == f"HOUSE. THE IN {code} USE"


def test_a_long_value_of_a_template_stays() -> None:
    code = "{{ url_for('main.view_notifications', service_id=current_service.id, message_type='email', status='delivered') }}"
    assert written(f"use {code} in the house.") == f"USE {code} IN THE HOUSE."


def test_joined_options_stay_behind_every_word() -> None:
    assert written("open it with -czstd now") == "OPEN IT WITH -czstd NOW"


@pytest.mark.parametrize("smiley", [":-)", ";)", ":(", ":-D", ":P", "<3", "^^", "xD", ":'("])
def test_smileys_stand_between_words(smiley: str) -> None:
    assert written(f"we love dogs {smiley}", REVERSED) == f"DOGS LOVE WE {smiley}"
    assert written(f"we are glad {smiley} today") == f"WE ARE GLAD {smiley} TODAY"


def test_a_smiley_of_html_stays_behind_its_text() -> None:
    page = read_document(b"<p>We have no private dogs :-)</p>", format_named("html"))
    assert translated(page, REVERSED) == "<p>DOGS PRIVATE NO HAVE WE :-)</p>"


def test_the_bracket_of_a_smiley_may_close_others() -> None:
    assert written("we go (as you know :) today") == "WE GO (AS YOU KNOW :) TODAY"
    assert written("we go (as you know) :) today") == "WE GO (AS YOU KNOW) :) TODAY"


@pytest.mark.parametrize(
    ("text", "capitals"),
    [
        ("&6Type &c/help&6 for dogs", "&6TYPE &c/help&6 FOR DOGS"),
        ("\u00a7aThe dogs\u00a7r sleep", "\u00a7aTHE DOGS\u00a7r SLEEP"),
        ("&lBig &chouse", "&lBIG &cHOUSE"),
        ("&4The house is red", "&4THE HOUSE IS RED"),
        ("&aYou are here", "&aYOU ARE HERE"),
        ("&3- Pick it -", "&3- PICK IT -"),
        ("&7> The dogs", "&7> THE DOGS"),
        (
            "\u00a7x\u00a7f\u00a70\u00a70\u00a7a\u00a7a\u00a7adogs sleep",
            "\u00a7x\u00a7f\u00a70\u00a70\u00a7a\u00a7a\u00a7aDOGS SLEEP",
        ),
    ],
)
def test_codes_of_colours_stay_before_their_words(text: str, capitals: str) -> None:
    assert written(text) == capitals
    document = read_document(json.dumps({"a": text}, ensure_ascii=False).encode(), format_named("json"))
    assert json.loads(translated(document)) == {"a": capitals}


@pytest.mark.parametrize(
    "text",
    [
        "he said -hmm- and left -very big- dogs",
        "salt &cats and you &me",
        "questions & answers, dogs & cats",
        "see \u00a75 of the law and \u00a7 7, \u00a75a too",
        "the dog(s) and the cats(dogs) sleep",
        "fruits(the big ones, and apples) are here",
        "hund=dog and 2+2=4",
        "love and hate; peace (and war) : it is so",
        "the list: (a) one, (b) two; (c) three",
        "cat and dog -the red one- sleep",
        "is it so? and so=so, a / b",
        "note:this is so and dogs:cats",
        "call no 1# and dogs#",
        "e.g.(as you know) we go, i.e. (so)",
    ],
)
def test_other_words_with_such_signs_are_text(text: str) -> None:
    kept = {"2+2=4", "\u00a75a"}  # 5A would be the name of something else
    words = [word if word in kept else word.upper() for word in text.split(" ")]
    assert written(text) == " ".join(words)


def test_nothing_changes_without_a_translation() -> None:
    text = "&6Use tar -xzf or foo(bar, baz) :-) in \u00a7athe house.\n"
    assert translated(read_document(text.encode(), format_named("txt")), Identity()) == text


@pytest.mark.parametrize("label", ["&about", "&Open the door", "Save &all dogs"])
def test_the_mark_of_a_key_is_no_code_of_a_colour(label: str) -> None:
    document = read_document(json.dumps({"a": label}).encode(), format_named("json"))
    assert json.loads(translated(document)) == {"a": label.upper()}


def test_a_tag_inside_other_code_divides_it_into_no_code() -> None:
    def page(text: str) -> str:
        return translated(read_document(f"<p>{text}</p>".encode(), format_named("html")), REVERSED)

    assert page("https:/<b>/example.co</b>m/very/long?a=1 is open") == (
        "<p>OPEN IS https:/<b>/example.co</b>m/very/long?a=1</p>"
    )
    assert page("the <b>dogs</b> <i>:)</i> sleep") == "<p><i>:)</i> SLEEP <b>DOGS</b> THE</p>"
