"""The page translates while somebody types: two panes, only changed sentences, one after the other."""

import random

import pytest
from selenium.webdriver.common.keys import Keys

from .browser import Page, needs_chromium
from .pretend_server import PretendServer

pytestmark = [pytest.mark.browser, needs_chromium]


def translated(server: PretendServer, text: str) -> str:
    """What the pretended server makes of a whole text."""
    return server.target(text, "it")


def test_a_text_is_translated_while_it_is_typed(page: Page, server: PretendServer) -> None:
    page.open().source.send_keys("Good morning.")
    page.wait_for_output("it-Good it-morning.")
    assert len(server.asked) <= 3  # not one request for each of the thirteen keys


def test_control_and_enter_translate_without_a_pause(page: Page, server: PretendServer) -> None:
    page.open()
    page.wait("document.getElementById('source-language').value === 'en'")
    page.js("window.setTimeout = () => 0")  # nothing happens by itself
    page.source.send_keys("Good")
    assert server.asked == []
    page.press(Keys.CONTROL, Keys.ENTER)
    page.wait_for_output("it-Good")


def test_only_the_sentences_around_a_change_are_translated_again(page: Page, server: PretendServer) -> None:
    page.open(q="One a. Two b. Three c. Four d. Five e. Six f.")
    page.wait_for_output("it-One it-a. it-Two it-b. it-Three it-c. it-Four it-d. it-Five it-e. it-Six it-f.")
    page.js("document.querySelector('#output .sentence').id = 'same'")
    page.write("One a. Two b. Three c. Four new. Five e. Six f.")
    page.wait("document.getElementById('output').textContent.includes('it-new')")
    page.wait_for_output("it-One it-a. it-Two it-b. it-Three it-c. it-Four it-new. it-Five it-e. it-Six it-f.")
    assert server.asked[-1]["q"].strip() == "Three c. Four new. Five e."
    assert page.by_id("same").text == "it-One it-a."


def test_a_sentence_that_is_not_green_is_shaded(page: Page, server: PretendServer) -> None:
    server.estimates = {"One a.": 0.9, "Two b.": 0.25}
    page.open(q="One a. Two b. Three c.")
    page.wait_for_output("it-One it-a. it-Two it-b. it-Three it-c.")
    colours = page.js(
        "[...document.querySelectorAll('#output .sentence')].map((one) => getComputedStyle(one).backgroundColor)"
    )
    assert colours[0] == colours[2] != colours[1]
    titles = page.js("[...document.querySelectorAll('#output .sentence')].map((one) => one.title)")
    assert titles == ["Green: 90 %", "Not green: 25 %", ""]
    assert page.js("document.getElementById('legend-green').hidden") is False
    page.js("document.getElementById('shade').click()")
    page.wait(
        "new Set([...document.querySelectorAll('#output .sentence')].map((one) => getComputedStyle(one).backgroundColor)).size === 1"
    )


def test_an_old_answer_never_replaces_a_newer_one(page: Page, server: PretendServer) -> None:
    page.open()
    server.delay_seconds = 1.0
    page.write("Old text.")
    page.wait("!document.getElementById('progress').hidden")
    server.delay_seconds = 0.0
    page.write("New text.")
    page.wait_for_output("it-New it-text.")
    page.js("new Promise((resolve) => setTimeout(resolve, 1200))")
    assert page.output == "it-New it-text."


def test_sentences_appear_one_by_one(page: Page, server: PretendServer) -> None:
    page.open()
    server.delay_seconds = 0.6
    page.write("One. Two. Three.")
    page.wait("document.getElementById('output').textContent.trim() === 'it-One.'")
    page.wait("document.getElementById('output').textContent.trim() === 'it-One. it-Two.'")
    page.wait_for_output("it-One. it-Two. it-Three.")


def test_line_breaks_and_spaces_stay(page: Page) -> None:
    page.open().write("\nOne.  Two.\n\n- Three\n")
    page.wait_for_output("\nit-One.  it-Two.\n\n- it-Three\n")


def test_any_series_of_edits_ends_with_the_translation_of_the_whole_text(page: Page, server: PretendServer) -> None:
    """What the page keeps from before an edit must be what the server says about the text after it."""
    choose, text = random.Random(7), "One a. Two b.\nThree c. Four d. Five e.\n\nSix f."
    page.open(q=text)
    page.wait_for_output(translated(server, text))
    for _ in range(25):
        start = choose.randrange(len(text) + 1)
        end = min(len(text), start + choose.choice([0, 0, 1, 3, 9]))
        text = text[:start] + choose.choice(["", "x", ".", "\n", " ", ". New ", "\n\n"]) + text[end:]
        page.write(text)
        if choose.random() < 0.3:  # the next edit comes before the answer
            continue
        page.press(Keys.CONTROL, Keys.ENTER)
        page.wait_until_translated()
        assert page.output == translated(server, text), repr(text)


def test_characters_of_two_units_in_javascript_do_not_shift_words(page: Page) -> None:
    page.open(q="😀 Good 👍🏽 day.")
    page.wait_for_output("😀 it-Good 👍🏽 it-day.")
    page.hover(page.word("it-day"))
    assert page.lit("mirror") == ["day."]


def test_a_text_that_is_too_long_is_not_sent(page: Page, server: PretendServer) -> None:
    page.open()
    page.write("a " * 2501)
    page.wait("document.getElementById('notice').textContent.includes('longer than 5,000')")
    assert server.asked == []
    assert page.by_id("count").get_attribute("class") == "count push over"


def test_languages_are_swapped_with_their_texts(page: Page, server: PretendServer) -> None:
    page.open(q="Good morning.")
    page.wait_for_output("it-Good it-morning.")
    page.press(Keys.CONTROL, Keys.SHIFT, "s")
    page.wait_for_output("en-it-Good en-it-morning.")
    assert page.source.get_attribute("value") == "it-Good it-morning."
    assert (server.asked[-1]["source"], server.asked[-1]["target"]) == ("it", "en")


def test_a_detected_language_is_told(page: Page) -> None:
    page.open(source="auto", target="it", q="Good.")
    page.wait_for_output("it-Good.")
    assert page.by_id("detected").text == "English, 97 %"


def test_a_link_brings_languages_and_text(page: Page) -> None:
    page.open(source="it", target="en", q="Buon giorno & grazie.")
    page.wait_for_output("en-Buon en-giorno & en-grazie.")
    page.by_id("link").click()
    page.wait("location.search.includes('giorno')")
    assert page.js("Object.fromEntries(new URLSearchParams(location.search))") == {
        "source": "it",
        "target": "en",
        "q": "Buon giorno & grazie.",
    }


def test_clearing_empties_both_sides(page: Page) -> None:
    page.open(q="Good.")
    page.wait_for_output("it-Good.")
    page.by_id("clear").click()
    page.wait("document.querySelector('#output .hint')")
    assert page.source.get_attribute("value") == ""
    assert not page.by_id("copy").is_enabled()


def test_the_translation_is_copied_as_plain_text(page: Page) -> None:
    grant = {"permissions": ["clipboardReadWrite"], "origin": page.address.rstrip("/")}
    page.driver.execute_cdp_cmd("Browser.grantPermissions", grant)
    page.open(q="One. Two.\n\nThree.")
    page.wait_for_output("it-One. it-Two.\n\nit-Three.")
    page.press(Keys.CONTROL, Keys.SHIFT, "c")
    page.wait("!document.getElementById('toast').hidden")
    copied = page.driver.execute_async_script(
        "const done = arguments[0]; navigator.clipboard.readText().then(done, (error) => done(String(error)))"
    )
    assert copied == "it-One. it-Two.\n\nit-Three."
