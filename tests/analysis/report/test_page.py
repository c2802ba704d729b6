"""The page in a browser: the first screen, narrow screens, dark, accessibility, no scripts."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pytest

from analysis import read_run_table
from analysis.data.frames import StudyFrames
from analysis.data.level_means import load_published_means
from analysis.report import write_level_means, write_multi_study, write_report
from analysis.report.topics import comparison, score, trials
from tests.analysis.conftest import build_study, make_trials

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "png_not_drawn")
TOPICS = (score.TOPIC, comparison.TOPIC, trials.TOPIC)
ATTACK = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)> $x$"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A study with every kind of section and a failed trial."""
    frame = make_trials()
    frame.loc[5, "state"] = "FAIL"
    frame.loc[5, "reason"] = "out of memory " * 30
    frame.loc[5, "score"] = float("nan")
    out = tmp_path_factory.mktemp("page")
    report = write_report(build_study(frame), out, generated="now", version="0.1.0")
    return report.page.as_uri()


@pytest.fixture(scope="module")
def means_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("means")
    means = load_published_means("figure2")
    return write_level_means(means, out, generated="now", version="0.1.0").page.as_uri()


def write_small(study: StudyFrames, out: Path) -> str:
    """A page of few sections, for what does not depend on the others."""
    report = write_report(study, out, generated="now", version="0.1.0", topics=TOPICS)
    return report.page.as_uri()


def make_state(state: str) -> StudyFrames:
    """A study of the kind that the name says."""
    frame, planned = make_trials(), 24
    if state == "running":
        frame.loc[:1, "state"] = "RUNNING"
        frame.loc[:1, "score"] = np.nan
    elif state == "paused":
        planned = 40
    elif state == "failed":
        frame = frame.assign(state="FAIL", score=np.nan)
        frame["reason"] = [f"reason {number % 5} of some length " * 4 for number in range(24)]
    elif state == "learning rates":
        low = frame[frame["mtd"] == frame["mtd"].max()]
        high = low.assign(learning_rate=1e-3, score=low["score"] + 2)
        frame = pd.concat([low.assign(learning_rate=1e-4), high], ignore_index=True)
        frame, planned = frame.assign(number=range(len(frame))), len(frame)
    elif state == "NaN":
        frame[["score", "alignment", "uniformity", "score_before"]] = np.nan
    elif state in ("0", "1", "2"):
        frame, planned = frame.iloc[: int(state)], max(int(state), 1)
    return build_study(frame, planned=planned)


@pytest.mark.parametrize(
    ("state", "status", "answer", "command"),
    [
        ("complete", "Complete", "The score peaks between MTD", "mtdlab confirm mtd"),
        (
            "running",
            "Running",
            "The score peaks between MTD",
            "mtdlab sweep studies/mtd.yaml",
        ),
        (
            "paused",
            "Paused",
            "The score peaks between MTD",
            "mtdlab sweep studies/mtd.yaml",
        ),
        (
            "failed",
            "Failed",
            "All 24 trials failed",
            "mtdlab sweep studies/mtd.yaml --retry-failed",
        ),
        ("learning rates", "Complete", "learning_rate 0.001 is best", ""),
        ("NaN", "Complete", "No result yet", ""),
        ("0", "Planned", "No result yet", "mtdlab sweep studies/mtd.yaml"),
        ("1", "Complete", "The mean score is", ""),
        ("2", "Complete", "The mean score is", ""),
    ],
)
@pytest.mark.usefixtures("figures_not_drawn")
def test_the_first_screen_answers(
    browser: "Browser", tmp_path: Path, state: str, status: str, answer: str, command: str
) -> None:
    study = make_state(state)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(5_000)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(write_small(study, tmp_path))
    assert messages == []
    assert page.locator(".state").inner_text().endswith(status)
    assert page.locator("h1").inner_text().startswith(answer)
    parts = [".status", "#question", "h1", ".certainty"]
    if state not in ("failed", "NaN", "0"):
        parts += [".scope", ".settings"]
    if state != "0":
        parts += [".facts"]
    if command:
        assert page.locator(".next pre").inner_text() == command
        parts.append(".next pre")
    for part in parts:
        box = page.locator(part).bounding_box()
        assert box is not None, part
        assert box["width"] > 0, part
        assert box["y"] + box["height"] <= 900, part
    assert "NaN" not in page.locator("body").inner_text()
    page.close()


@pytest.mark.parametrize("kind", ["program", "table", "means", "studies"])
@pytest.mark.usefixtures("figures_not_drawn")
def test_the_first_screen_of_every_kind_of_page_has_its_facts(
    browser: "Browser", means_address: str, tmp_path: Path, kind: str
) -> None:
    study = build_study(make_trials(times=(1, 8)))
    if kind == "program":
        address = write_small(
            dataclasses.replace(study, methods={"toy:train": "toy:train"}), tmp_path
        )
    elif kind == "table":
        study.trials[["seed", "score", "mtd"]].to_csv(tmp_path / "runs.csv", index=False)
        address = write_small(read_run_table(tmp_path / "runs.csv"), tmp_path)
    elif kind == "means":
        address = means_address
    else:
        both = [study, dataclasses.replace(study, name="other")]
        written = write_multi_study(both, tmp_path, name="all", generated="now", version="0")
        address = written.page.as_uri()
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(5_000)
    page.goto(address)
    for part in (".status", "#question", "h1", ".certainty", ".scope", ".settings", ".next"):
        box = page.locator(part).bounding_box()
        assert box is not None, part
        assert box["y"] + box["height"] <= 900, part
    assert page.locator(".facts dt").all_inner_texts()[:2] == ["Varied", "Data and metric"]
    assert page.locator(".facts pre").inner_text().startswith("mtdlab ")
    box = page.locator(".facts").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 900
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


@pytest.fixture(scope="module")
def audit() -> Callable[..., str]:
    """The violations that axe-core finds on a page, as text."""
    axe: Any = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()

    def run(page: "Page") -> str:
        # A figure is an image with a text; what is drawn in it has no roles. Left in the page,
        # it takes most of the time of the audit, excluded or not.
        page.evaluate("document.querySelectorAll('figure svg g').forEach(each => each.remove())")
        found = axe.run(page)
        return "" if not found.violations_count else str(found.generate_report())

    return run


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_the_page_is_accessible(
    browser: "Browser", audit: Callable[..., str], address: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(address)
    assert audit(page) == ""
    page.emulate_media(color_scheme="dark")
    assert audit(page) == ""
    page.close()


def test_the_page_of_level_means_is_accessible_and_fits(
    browser: "Browser", audit: Callable[..., str], means_address: str
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(means_address)
    assert audit(page) == ""
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.locator("h1").inner_text() == (
        "The score falls overall with MTD; it is best between MTD 5 and 14.7"
    )
    page.close()


def test_the_page_is_whole_without_scripts(browser: "Browser", address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("tr[id^=trial-]").count() == 24
    assert page.locator("th button, .copy, .filter").count() == 0
    page.keyboard.press("Tab")
    assert page.locator("a.skip").is_visible()
    context.close()


def test_hostile_names_do_nothing(browser: "Browser", tmp_path: Path) -> None:
    frame = make_trials().assign(queue_slice=[ATTACK, "all"] * 12)
    frame.loc[0, "state"], frame.loc[0, "reason"] = "FAIL", ATTACK
    study = dataclasses.replace(
        build_study(frame), name=ATTACK, metric=ATTACK, command=ATTACK, description=f"{ATTACK}?"
    )
    page = browser.new_page(viewport={"width": 390, "height": 800})
    events: list[str] = []
    page.on("dialog", lambda dialog: events.append(dialog.message))
    page.on("console", lambda message: events.append(message.text))
    page.goto(write_small(study, tmp_path))
    assert events == []
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#question").inner_text() == f"{ATTACK}?"
    page.close()
