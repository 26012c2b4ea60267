"""Fixtures for tests of the page: one browser for all of them, and a pretended server for each."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .pretend_server import PretendServer, running

# Selenium takes half a second to import, and most runs of tests have no browser.
if TYPE_CHECKING:
    from selenium import webdriver

    from .browser import Page


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def driver(downloads: Path) -> Iterator["webdriver.Chrome"]:
    from .browser import chromium

    with chromium(downloads) as browser:
        yield browser


@pytest.fixture(scope="session")
def running_server() -> Iterator[PretendServer]:
    with running(PretendServer()) as pretended:
        yield pretended


@pytest.fixture
def server(running_server: PretendServer) -> PretendServer:
    running_server.forget()
    return running_server


@pytest.fixture
def page(driver: "webdriver.Chrome", server: PretendServer) -> "Iterator[Page]":
    """The page of the pretended server; at the end, the browser has nothing to complain about but refused requests."""
    from .browser import Page

    found = Page(driver, server.address)
    found.look(1200)
    found.complaints()
    yield found
    # Nothing of this test asks the server during the next one.
    driver.get("about:blank")
    serious = [one for one in found.complaints() if "Failed to load resource" not in one]
    assert serious == []


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core, which finds what hinders people with disabilities."""
    folder = tmp_path_factory.mktemp("axe")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm")
    command = [npm, "install", "--prefix", str(folder), "--no-save", "axe-core@4"]
    if subprocess.run(command, capture_output=True, timeout=120).returncode:
        pytest.skip("axe-core cannot be installed")
    return Path(folder, "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
