"""The page in a browser: sorting, narrow screens, dark, and without scripts."""

import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import pandas as pd
import pytest

from analysis.frames import StudyFrames
from analysis.level_means import load_published_means
from analysis.report import write_level_means, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(
    trials_of: Callable[..., pd.DataFrame],
    study_of: Callable[..., StudyFrames],
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    trials = trials_of()
    trials.loc[5, "state"] = "FAIL"
    trials.loc[5, "reason"] = "out of memory " * 30
    trials.loc[5, "score"] = float("nan")
    out = tmp_path_factory.mktemp("page")
    report = write_report(study_of(trials), out, generated="now", version="0.1.0")
    return report.page.as_uri()


def test_the_page_of_level_means_fits_a_narrow_screen(
    browser: "Browser", tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("means")
    means = load_published_means("figure2")
    report = write_level_means(means, out, generated="now", version="0.1.0")
    page = browser.new_page(viewport={"width": 320, "height": 800})
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(report.page.as_uri())
    assert messages == []
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.locator("h2").first.inner_text() == "Verdict: inconclusive"
    page.close()


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_complains_of_nothing(
    browser: "Browser", address: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: messages.append(request.url))
    page.goto(address)
    assert messages == [address]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_trials_are_sorted_by_a_button(browser: "Browser", address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    head = page.locator("table.sortable th", has_text="score")
    column = head.evaluate("cell => cell.cellIndex")
    for direction, sign in (("ascending", 1), ("descending", -1)):
        head.get_by_role("button").press("Enter")
        assert head.get_attribute("aria-sort") == direction
        cells = page.locator(f"table.sortable td:nth-child({column + 1})").all_inner_texts()
        assert cells[-1] == "–"
        scores = [sign * float(cell) for cell in cells[:-1]]
        assert scores == sorted(scores)
    assert page.locator("[aria-sort]").count() == 1
    page.close()


def test_the_page_is_whole_without_scripts(browser: "Browser", address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("table.sortable tbody tr").count() == 24
    assert page.locator("th button").count() == 0
    page.keyboard.press("Tab")
    assert page.locator("a.skip").is_visible()
    context.close()
