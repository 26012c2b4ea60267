"""The page for everybody: narrow and wide windows, light and dark, right to left, screen readers, less motion."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from .browser import Page, needs_chromium
from .pretend_server import PretendServer

pytestmark = [pytest.mark.browser, needs_chromium]
LONG = "Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenauszahlungsstelle. " * 3


def test_nothing_is_wider_than_a_narrow_window(page: Page, server: PretendServer) -> None:
    server.words = {"Word": LONG.split()[0].strip(".")}
    page.look(320)
    page.open(q=f"{LONG} Word.")
    page.wait("document.querySelector('#output .word') && document.getElementById('progress').hidden")
    page.js("document.querySelector('#output .word').click()")
    page.wait("document.querySelectorAll('#likely li button').length > 1")
    assert page.js("document.documentElement.scrollWidth") == 320
    assert (
        page.js(
            "[...document.querySelectorAll('main *, #likely')].filter((one) => one.getBoundingClientRect().right > 320.5 && getComputedStyle(one).position !== 'absolute').length"
        )
        == 0
    )


def test_colours_follow_the_system_until_somebody_chooses(page: Page) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page.look(800, theme="dark")
    page.open()
    assert page.js(background) == "rgb(19, 21, 25)"
    page.by_id("theme").click()  # light
    assert page.js(background) == "rgb(245, 244, 240)"
    page.again()
    assert page.js(background) == "rgb(245, 244, 240)"
    page.by_id("theme").click()  # dark
    page.look(800, theme="light")
    assert page.js(background) == "rgb(19, 21, 25)"
    assert page.by_id("theme").get_attribute("aria-label") == "Colours: dark"


def test_each_paragraph_has_the_direction_of_its_script(page: Page, server: PretendServer) -> None:
    server.pairs = [("en", "ar")]
    server.words = {"Good": "صباح", "morning": "الخير", "Thanks": "شكرا"}
    page.open(q="Good morning.\n42 OK.")
    page.wait_for_output("صباح الخير.\nar-42 ar-OK.")
    directions = "[...document.querySelectorAll('#output p')].map((one) => getComputedStyle(one).direction)"
    assert page.js(directions) == ["rtl", "ltr"]
    assert page.by_id("output").get_attribute("lang") == "ar"
    page.js("document.querySelector('#output .word').focus()")
    page.press(Keys.ARROW_LEFT)  # the next word stands on the left
    assert page.js("document.activeElement.textContent") == "الخير"


def test_a_screen_reader_hears_the_finished_translation_once(page: Page) -> None:
    page.open()
    assert page.by_id("live").get_attribute("aria-live") == "polite"
    page.write("One. Two.")
    page.wait_for_output("it-One. it-Two.")
    assert page.js("document.getElementById('live').textContent") == ""
    page.wait("document.getElementById('live').textContent === 'it-One. it-Two.'")
    for element in page.driver.find_elements(By.CSS_SELECTOR, "button, select, textarea"):
        assert element.accessible_name or not element.is_displayed(), element.get_attribute("id")


def test_escape_and_question_mark_open_and_close(page: Page) -> None:
    page.open()
    page.source.send_keys("?")
    assert page.source.get_attribute("value") == "?"
    page.by_id("theme").send_keys("?")
    assert page.by_id("help").is_displayed()
    page.press(Keys.ESCAPE)
    assert not page.by_id("help").is_displayed()
    page.by_id("open-inside").click()
    assert "Write a text first" in page.by_id("inside").text or page.by_id("inside").is_displayed()
    page.press(Keys.ESCAPE)
    assert not page.by_id("inside").is_displayed()
    assert page.js("document.activeElement.id") == "open-inside"


def test_nothing_moves_for_those_who_ask_for_it(page: Page, server: PretendServer) -> None:
    page.open()
    features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    page.write("One. Two.")
    page.wait_for_output("it-One. it-Two.")
    assert page.js("document.getAnimations().length") == 0


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1400])
def test_axe_finds_no_violation(page: Page, server: PretendServer, axe: str, width: int, theme: str) -> None:
    server.shares = {"it-Good": 0.7, "it-morning": 0.4, "it-train": 0.1}
    page.look(width, theme=theme)
    page.open()
    page.use(axe)
    assert page.violations() == []  # empty
    page.write("Good morning. The train is late.")
    page.wait_for_output("it-Good it-morning. it-The it-train it-is it-late.")
    page.js("document.querySelector('#output .word').click()")
    page.wait("document.querySelectorAll('#likely li button').length > 1")
    page.wait("document.querySelectorAll('#others li').length > 1")
    assert page.violations() == []  # likely words, other translations
    page.press(Keys.ESCAPE)
    for button in ("open-help", "open-history"):
        page.wait("document.getElementById('live').textContent")
        page.by_id(button).click()
        assert page.violations() == [], button
        page.press(Keys.ESCAPE)
    server.refusals = [(500, "Internal server error", 0), (400, "letter.txt: damaged", 0)]
    page.write("More.")
    page.wait("!document.getElementById('notice').hidden")
    assert page.violations() == []  # an error
