"""States of the page: loading, busy, away, errors, keys; history; files."""

import time
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from .browser import Page, needs_chromium
from .pretend_server import PretendServer

pytestmark = [pytest.mark.browser, needs_chromium]
DROP = """
const files = new DataTransfer();
files.items.add(new File(['good morning'], arguments[1]));
for (const type of ['dragenter', 'dragover', 'drop'].slice(0, arguments[0]))
  document.body.dispatchEvent(new DragEvent(type, { dataTransfer: files, bubbles: true, cancelable: true }));
"""


def test_a_server_that_still_loads_is_asked_again(page: Page, server: PretendServer) -> None:
    server.is_loading = True
    page.open(q="Good.")
    page.wait("document.getElementById('notice').textContent.includes('loads its models')")
    server.is_loading = False
    page.wait_for_output("it-Good.")
    assert not page.by_id("notice").is_displayed()


def test_a_busy_server_is_asked_again_after_the_time_that_it_names(page: Page, server: PretendServer) -> None:
    server.refusals = [(429, "Slowdown: too many requests are waiting", 2)]
    page.open(q="Good.")
    page.wait("document.getElementById('notice').textContent.includes('busy')")
    refused_at = time.monotonic()
    page.wait_for_output("it-Good.")
    assert time.monotonic() - refused_at > 1.5
    assert len(server.asked) == 2


def test_a_connection_that_comes_back_is_used_at_once(page: Page) -> None:
    page.open(q="Good.")
    page.wait_for_output("it-Good.")
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    change = "Network.emulateNetworkConditions"
    page.driver.execute_cdp_cmd("Network.enable", {})
    page.driver.execute_cdp_cmd(change, {"offline": True, **network})
    page.write("Good. More.")
    page.wait("document.getElementById('notice').textContent.includes('offline')")
    assert page.output.startswith("it-Good.")  # what was there can still be read
    page.driver.execute_cdp_cmd(change, {"offline": False, **network})
    page.wait_for_output("it-Good. it-More.")


def test_an_error_is_told_and_the_finished_sentences_stay(page: Page, server: PretendServer) -> None:
    server.break_after = 1
    page.open(q="One. Two.")
    page.wait("document.getElementById('notice').textContent.includes('took too long')")
    assert page.output.startswith("it-One.")
    assert page.by_id("notice").get_attribute("role") == "alert"
    server.break_after = 0
    page.by_id("notice").find_element(By.TAG_NAME, "button").click()
    page.wait_for_output("it-One. it-Two.")
    assert server.asked[-1]["q"].strip() == "Two."


def test_a_key_is_asked_for_and_never_stored(page: Page, server: PretendServer) -> None:
    server.key = "secret"
    page.open(q="Good.")
    page.wait("document.querySelector('#notice input')")
    page.driver.find_element(By.CSS_SELECTOR, "#notice input").send_keys("secret", Keys.ENTER)
    page.wait_for_output("it-Good.")
    assert "secret" not in page.js("JSON.stringify(localStorage) + document.cookie + location")


def test_the_history_is_kept_in_the_browser_until_it_is_deleted(page: Page) -> None:
    page.open(q="Good.")
    page.wait_for_output("it-Good.")
    page.wait("localStorage.getItem('tfm.history')")
    page.write("Good. More.")  # typed on: still one entry
    page.wait("JSON.parse(localStorage.getItem('tfm.history'))[0].t === 'it-Good. it-More.'")
    page.by_id("clear").click()
    page.by_id("open-history").click()
    entries = page.driver.find_elements(By.CSS_SELECTOR, "#past li")
    assert [entry.text.split("\n")[1:] for entry in entries] == [["Good. More.", "it-Good. it-More."]]
    entries[0].find_element(By.TAG_NAME, "button").click()
    page.wait_for_output("it-Good. it-More.")
    page.by_id("open-history").click()
    page.by_id("keep").click()
    page.by_id("forget").click()
    assert page.by_id("past").text == "Nothing yet."
    page.press(Keys.ESCAPE)
    page.write("New.")
    page.wait_for_output("it-New.")
    page.wait("document.getElementById('live').textContent === 'it-New.'")
    assert page.js("localStorage.getItem('tfm.history')") == "[]"


def test_a_dropped_file_comes_back_translated(page: Page, downloads: Path) -> None:
    page.open()
    page.wait("!document.getElementById('pick-file').hidden")
    page.driver.execute_script(DROP, 2, "letter.txt")
    assert page.by_id("drop").is_displayed()
    page.driver.execute_script(DROP, 3, "letter.txt")
    assert not page.by_id("drop").is_displayed()
    page.wait("document.querySelector('#files a')")
    assert "Translated into Italian" in page.by_id("files").text
    page.driver.find_element(By.CSS_SELECTOR, "#files a").click()
    stop_at = time.monotonic() + 20
    while not (found := list(downloads.glob("letter*.txt"))):
        assert time.monotonic() < stop_at
        time.sleep(0.05)
    assert found[0].read_text() == "GOOD MORNING"


def test_the_progress_of_a_file_is_shown(page: Page, server: PretendServer) -> None:
    server.num_sentences_of_file = 7
    page.open()
    page.wait("!document.getElementById('pick-file').hidden")
    page.driver.execute_script(DROP, 3, "letter.txt")
    page.wait("document.querySelector('#files progress')?.value === 3")
    assert "3 of 7 sentences" in page.by_id("files").text
    server.may_end_file.set()
    page.wait("document.querySelector('#files a')")


def refused_file(page: Page, server: PretendServer, status: int, message: str) -> None:
    server.refusals = [(status, message, 0)]
    page.open()
    page.wait("!document.getElementById('pick-file').hidden")
    page.driver.execute_script(DROP, 3, "letter.xyz")
    page.wait("document.querySelector('#files .bad')")
    assert message in page.by_id("files").text


def test_a_file_that_fails_can_be_tried_again(page: Page, server: PretendServer) -> None:
    refused_file(page, server, 429, "Slowdown: 16 files are waiting")
    page.driver.find_element(By.CSS_SELECTOR, "#files .solid").send_keys(Keys.ENTER)
    page.wait("document.querySelector('#files a')")
    assert page.js("document.activeElement.closest('#files') !== null")


def test_a_file_of_a_wrong_kind_is_not_tried_again(page: Page, server: PretendServer) -> None:
    refused_file(page, server, 400, "letter.xyz: files of this kind cannot be translated")
    assert page.driver.find_elements(By.CSS_SELECTOR, "#files .solid") == []
    page.driver.find_element(By.CSS_SELECTOR, "#files button").send_keys(Keys.ENTER)
    page.wait("document.activeElement.id === 'source'")


def test_what_is_wrong_with_a_text_is_said_without_a_second_try(page: Page, server: PretendServer) -> None:
    server.refusals = [(400, "Invalid request: exceeds text limit", 0)]
    page.open(q="Good.")
    page.wait("document.getElementById('notice').textContent.includes('exceeds text limit')")
    assert page.by_id("notice").find_elements(By.TAG_NAME, "button") == []
    page.write("Good day.")
    page.wait_for_output("it-Good it-day.")
    assert not page.by_id("notice").is_displayed()


def test_a_text_that_was_cleared_comes_back_with_undo(page: Page) -> None:
    page.open(q="Good morning.")
    page.wait_for_output("it-Good it-morning.")
    page.by_id("clear").click()
    page.wait_for_output("")
    assert page.js("document.activeElement.id") == "source"
    page.press(Keys.CONTROL, "z")
    page.wait_for_output("it-Good it-morning.")


def test_a_reload_shows_the_text_of_its_tab_again(page: Page) -> None:
    page.open(q="Good.")
    page.wait_for_output("it-Good.")
    page.write("Good day.")
    page.wait_for_output("it-Good it-day.")
    page.driver.refresh()
    page.wait_for_output("it-Good it-day.")
    page.by_id("clear").click()
    page.driver.refresh()
    page.wait("document.getElementById('source-language').value === 'en'")
    assert page.source.get_attribute("value") == ""
    page.again(q="Another link.")
    page.wait_for_output("it-Another it-link.")


def test_a_server_without_files_offers_none(page: Page, server: PretendServer) -> None:
    server.has_files = False
    page.open(q="Good.")
    page.wait_for_output("it-Good.")
    assert not page.by_id("pick-file").is_displayed()
    page.driver.execute_script(DROP, 3, "letter.txt")
    assert page.by_id("toast").get_attribute("textContent") == "This server translates no files."
