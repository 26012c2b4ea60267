"""Words and sentences of the page: what belongs together, how sure the model is, and what else it could have written."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from .browser import Page, needs_chromium
from .pretend_server import PretendServer

pytestmark = [pytest.mark.browser, needs_chromium]
TEXT = "Good morning. The train is late."
TRANSLATED = "it-Good it-morning. it-The it-train it-is it-late."


def listed(page: Page, holder: str) -> list[str]:
    """The texts of the buttons in a list."""
    return list(
        page.js(
            f"[...document.querySelectorAll('#{holder} li button')].map((one) => one.querySelector('.piece, .text').textContent)"
        )
    )


def test_words_that_belong_together_are_lit_on_both_sides(page: Page) -> None:
    page.open(q=TEXT)
    page.wait_for_output(TRANSLATED)
    page.hover(page.word("it-train"))
    assert (page.lit("mirror"), page.lit("output")) == (["train"], ["it-train"])
    assert page.js("[...document.querySelectorAll('.sentence.lit')].map((one) => one.textContent)") == [
        "The train is late.",
        "it-The it-train it-is it-late.",
    ]
    # The source is a text field: its words lie below it.
    page.hover(page.driver.find_element(By.CSS_SELECTOR, "#mirror .word"))
    assert (page.lit("mirror"), page.lit("output")) == (["Good"], ["it-Good"])
    page.js("document.getElementById('source').setSelectionRange(16, 16)")
    page.source.send_keys(Keys.ARROW_RIGHT * 3)
    page.wait("document.querySelector('#output .word.lit')?.textContent === 'it-train'")


def test_a_likely_word_is_chosen_with_the_mouse_and_taken_back(page: Page, server: PretendServer) -> None:
    page.open(q=TEXT)
    page.wait_for_output(TRANSLATED)
    page.word("it-train").click()
    page.wait("document.querySelectorAll('#likely li button').length > 1")
    assert listed(page, "likely") == ["it-train", "other1", "other2", "other3", "other4"]
    assert "95 %" in page.by_id("likely").text
    page.wait("document.getElementById('then').textContent === 'it-The other1 it-is it-late.'")
    page.driver.find_elements(By.CSS_SELECTOR, "#likely li button")[2].click()
    page.wait_for_output("it-Good it-morning. it-The other2 it-is it-late.")
    assert not page.by_id("likely").is_displayed()
    page.by_id("undo").click()
    page.wait_for_output(TRANSLATED)


def test_a_likely_word_is_chosen_with_the_keyboard(page: Page) -> None:
    page.open(q=TEXT)
    page.wait_for_output(TRANSLATED)
    page.js("document.querySelector('#output .word[tabindex=\"0\"]').focus()")
    page.press(Keys.END)
    page.press(Keys.ARROW_LEFT)
    assert page.js("document.activeElement.textContent") == "it-is"
    page.press(Keys.ENTER)
    page.wait("document.querySelectorAll('#likely li button').length > 1")
    page.wait("document.activeElement.textContent.includes('other1')")
    page.press(Keys.ESCAPE)
    page.wait("document.activeElement.textContent === 'it-is'")
    page.press(Keys.ENTER)
    page.wait("document.activeElement.textContent.includes('other1')")
    page.press(Keys.ARROW_DOWN)
    page.press(Keys.ENTER)
    page.wait_for_output("it-Good it-morning. it-The it-train other2 it-late.")
    page.wait("document.activeElement.textContent === 'other2'")


def test_the_focus_stays_on_its_word_when_another_translation_takes_its_place(page: Page) -> None:
    page.open(q="The train is late.")
    page.wait_for_output("it-The it-train it-is it-late.")
    page.wait("document.querySelectorAll('#others li').length === 5")
    page.js("document.querySelector('#output .word[tabindex=\"0\"]').focus()")
    page.press(Keys.ARROW_RIGHT)
    page.press(Keys.ENTER)
    page.wait("document.activeElement.textContent.includes('other1')")
    page.press(Keys.ENTER)
    page.wait("document.activeElement.textContent === 'other1'")
    page.press(Keys.ESCAPE)
    page.press(Keys.ALT, "2")
    page.wait_for_output("it-The it-train it-is it-late. 1")
    assert page.js("document.activeElement.textContent") == "it-train"
    # From the list, too, and from the button that takes a choice back.
    page.js("document.querySelectorAll('#others button')[2].focus()")
    page.press(Keys.ENTER)
    page.wait_for_output("it-The it-train it-is it-late. 2")
    assert page.js("document.activeElement === document.querySelectorAll('#others button')[2]")
    page.by_id("undo").send_keys(Keys.ENTER)
    page.wait_for_output("it-The it-train it-is it-late.")
    page.wait("document.activeElement.textContent === 'it-The'")


def test_a_chosen_translation_stays_while_other_sentences_change(page: Page) -> None:
    page.open(q=TEXT)
    page.wait_for_output(TRANSLATED)
    page.word("it-train").click()
    page.wait("document.querySelectorAll('#likely li button').length > 1")
    page.driver.find_elements(By.CSS_SELECTOR, "#likely li button")[1].click()
    page.wait("document.getElementById('output').textContent.includes('other1')")
    page.write(TEXT.replace("Good", "New"))
    page.wait_for_output("it-New it-morning. it-The other1 it-is it-late.")


def test_other_translations_of_a_sentence_are_listed_and_taken(page: Page) -> None:
    page.open(q=TEXT)
    page.wait_for_output(TRANSLATED)
    page.js("document.querySelectorAll('#output .sentence')[1].click()")
    page.wait("document.querySelectorAll('#others li').length === 5")
    second = "it-The it-train it-is it-late."
    assert listed(page, "others") == [second, *(f"{second} {n}" for n in range(1, 5))]
    assert page.by_id("others-title").text == "Translations of sentence 2 of 2"
    page.press(Keys.ALT, "3")
    page.wait_for_output(f"{TRANSLATED} 2")
    pressed = "[...document.querySelectorAll('#others button')].map((one) => one.ariaPressed)"
    assert page.js(pressed) == ["false", "false", "true", "false", "false"]
    page.press(Keys.ALT, "1")
    page.wait_for_output(TRANSLATED)


def test_lines_under_words_say_how_sure_the_model_is(page: Page, server: PretendServer) -> None:
    server.shares = {"it-Good": 0.7, "it-morning": 0.4, "it-train": 0.1}
    page.open(q=TEXT)
    page.wait_for_output(TRANSLATED)
    line = "(name) => getComputedStyle([...document.querySelectorAll('#output .word')].find((one) => one.textContent === name)).textDecorationStyle"
    styles = f"['it-Good', 'it-morning', 'it-train'].map({line})"
    assert page.js(styles) == ["dotted", "dashed", "wavy"]
    assert page.by_id("legend").text.split("\n") == ["How sure", "under 80 %", "under 50 %", "under 20 %"]
    page.by_id("shade").click()
    assert page.by_id("shade").get_attribute("aria-checked") == "false"
    page.again(q=TEXT)  # the switch is remembered
    page.wait_for_output(TRANSLATED)
    assert page.js(styles) == ["solid", "solid", "solid"]
    assert page.js("getComputedStyle(document.querySelector('#output .u1')).textDecorationLine") == "none"
