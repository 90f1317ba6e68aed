"""A headless Chromium for the tests that need one."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def chromium() -> str:
    """The machine's Chromium; without one the tests are skipped."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    return found


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator["Browser"]:
    """A browser for the tests of one file."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (the dev extra)")
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield made
        made.close()
