"""The page in a browser: the first screen, narrow screens, dark, accessibility, no scripts."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from mtdlab.analysis import read_run_table
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.analysis.inference.level_means import load_published_means
from mtdlab.analysis.report import Report, write_level_means, write_multi_study
from mtdlab.analysis.report.topics import configurations, score, trials
from tests.analysis.conftest import OpenPage, build_study, make_trials
from tests.analysis.report.test_report import make_state, write

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "png_not_drawn")
TOPICS = (score.TOPIC, configurations.TOPIC, trials.TOPIC)
SWEEP = "mtdlab sweep studies/mtd.yaml"
ATTACK = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)> $x$"


@pytest.fixture(scope="module")
def address(report: Report) -> str:
    """A study with every kind of section and a failed trial."""
    return report.page.as_uri()


@pytest.fixture(scope="module")
def means_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("means")
    means = load_published_means("figure2")
    return write_level_means(means, out, generated="now", version="0.1.0").page.as_uri()


def write_small(study: StudyFrames, out: Path) -> str:
    """A page of few sections, for what does not depend on the others."""
    return write(study, out, topics=TOPICS).page.as_uri()


def assert_on_the_first_screen(page: "Page", parts: list[str]) -> None:
    for part in parts:
        box = page.locator(part).bounding_box()
        assert box is not None, part
        assert box["width"] > 0, part
        assert box["y"] + box["height"] <= 900, part


@pytest.mark.parametrize(
    ("state", "status", "answer", "command"),
    [
        ("complete", "Complete", "The score peaks between MTD", "mtdlab confirm mtd"),
        pytest.param(
            *("running", "Running", "The score peaks between MTD", SWEEP), marks=pytest.mark.slow
        ),
        pytest.param(
            *("paused", "Paused", "The score peaks between MTD", SWEEP), marks=pytest.mark.slow
        ),
        ("failed", "Failed", "All 24 trials failed", f"{SWEEP} --retry-failed"),
        ("learning rates", "Complete", "learning rate 0.001 is best", ""),
        pytest.param("NaN", "Complete", "No result yet", "", marks=pytest.mark.slow),
        ("0", "Planned", "No result yet", SWEEP),
        pytest.param("1", "Complete", "The mean score is", "", marks=pytest.mark.slow),
        pytest.param("2", "Complete", "The mean score is", "", marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("figures_not_drawn")
def test_the_first_screen_answers(
    open_page: OpenPage, tmp_path: Path, state: str, status: str, answer: str, command: str
) -> None:
    address, messages = write_small(make_state(state), tmp_path), []
    page = open_page(address, 1440, 900, messages)
    assert messages == [address]
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
    assert_on_the_first_screen(page, parts)
    assert "NaN" not in page.locator("body").inner_text()


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A study of which much limits the answer, whose trials ran with two commits."""
    frame = make_trials(times=(2,), decays=(0.5, 0.85, 0.9), seeds=range(4))
    frame = frame.assign(steps=160, best_step=160.0, select_on="test")
    frame.loc[3, "state"] = "PRUNED"
    study = build_study(frame)
    used = dataclasses.replace(study.ran_with, versions={"Python": "3.11"})
    both = tuple(dataclasses.replace(used, commit=commit) for commit in ("ab12", "cd34"))
    study = dataclasses.replace(study, environments=both, sampler="tpe")
    return write(study, tmp_path_factory.mktemp("crowded")).page.as_uri()


def test_the_first_screen_has_one_large_number_and_the_figure_beside_the_answer(
    open_page: OpenPage, crowded: str
) -> None:
    page = open_page(crowded, 1440, 900)
    assert_on_the_first_screen(page, [".grounds", ".lead", ".advice", ".copies dd > .command pre"])
    parts = (".verdict >> nth=0", ".grounds", ".lead", ".advice")
    boxes = [page.locator(part).bounding_box() for part in parts]
    answer, grounds, figure, advice = (box for box in boxes if box is not None)
    assert grounds["y"] == pytest.approx(answer["y"] + answer["height"], abs=1)
    assert figure["x"] >= answer["x"] + answer["width"]
    assert figure["y"] == answer["y"]
    assert advice["y"] >= figure["y"] + figure["height"]
    sizes = page.locator("header p, header h1, header b, header li").evaluate_all(
        "all => all.map(each => parseFloat(getComputedStyle(each).fontSize))"
    )
    assert sorted(sizes)[-1] > 2 * sorted(sizes)[-2]
    assert page.locator(".effect b").count() == 1
    commands = page.locator(".copies dd > .command pre").inner_text().splitlines()
    assert commands == ["git checkout cd34 && pip install .", SWEEP]
    assert page.locator(".made").inner_text().endswith(" · runs of commits ab12, cd34")


def test_a_phone_shows_the_answer_then_the_figure_then_its_grounds_and_the_advice(
    open_page: OpenPage, crowded: str
) -> None:
    page = open_page(crowded, 390, 844)
    parts = (".verdict >> nth=0", ".lead", ".grounds", ".advice", ".opening .facts", ".copies")
    tops = [box["y"] for part in parts if (box := page.locator(part).bounding_box()) is not None]
    assert tops == sorted(tops)
    assert len(set(tops)) == 6


def test_at_most_three_caveats_stand_on_the_first_screen_and_all_below(
    open_page: OpenPage, crowded: str
) -> None:
    page = open_page(crowded, 1440, 900)
    caveats = page.locator(".caveats li").all_inner_texts()
    assert caveats == [
        "Of what makes up MTD only ema_decay varies: its effect and that of MTD cannot be told "
        "apart.",
        "Checkpoints were chosen on the TEST pairs, so the scores are too high.",
        "The training text and the evaluation pairs are synthetic (the built-in data set).",
    ]
    notes = page.locator(".notes li").all_inner_texts()
    assert len(notes) > 5
    assert [sum(note.startswith(caveat) for note in notes) for caveat in caveats] == [1, 1, 1]
    page.get_by_role("link", name="What this does not show").first.click()
    assert page.evaluate("location.hash") == "#limits"


@pytest.mark.parametrize(
    "kind",
    [
        "table",
        "means",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("program", "studies")),
    ],
)
@pytest.mark.usefixtures("figures_not_drawn")
def test_the_first_screen_of_every_kind_of_page_has_its_facts(
    open_page: OpenPage, means_address: str, tmp_path: Path, kind: str
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
    page = open_page(address, 1440, 900)
    parts = ("question", "certainty", "scope", "settings", "next", "facts")
    assert_on_the_first_screen(page, [".status", "h1", *(f".{part}" for part in parts)])
    assert page.locator(".facts dt").all_inner_texts()[:2] == ["Varied", "Data and metric"]
    assert page.locator(".copies dd > .command pre").inner_text().startswith("mtdlab ")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_the_page_fits_and_complains_of_nothing(
    open_page: OpenPage, address: str, scheme: Literal["light", "dark"]
) -> None:
    messages: list[str] = []
    page = open_page(address, messages=messages, color_scheme=scheme)
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert messages == [address]


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


@pytest.mark.parametrize(
    "width", [390, *(pytest.param(width, marks=pytest.mark.slow) for width in (768, 1280))]
)
def test_the_page_is_accessible(
    open_page: OpenPage, audit: Callable[..., str], address: str, width: int
) -> None:
    page = open_page(address, width)
    assert audit(page) == ""
    page.emulate_media(color_scheme="dark")
    assert audit(page) == ""


def test_the_page_of_level_means_is_accessible_and_fits(
    open_page: OpenPage, audit: Callable[..., str], means_address: str
) -> None:
    page = open_page(means_address, 390)
    assert audit(page) == ""
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.locator("h1").inner_text() == (
        "The score falls with MTD; it is best between MTD 5 and 14.7, where it may rise, be level "
        "or fall"
    )


def test_the_page_is_whole_without_scripts(open_page: OpenPage, address: str) -> None:
    page = open_page(address, java_script_enabled=False)
    assert page.locator("tr[id^=trial-]").count() == 48
    assert page.locator("th button, .copy, .filter").count() == 0
    page.keyboard.press("Tab")
    assert page.locator("a.skip").is_visible()


def test_hostile_names_do_nothing(open_page: OpenPage, tmp_path: Path) -> None:
    frame = make_trials().assign(queue_slice=[ATTACK, "all"] * 12)
    frame.loc[0, "state"], frame.loc[0, "reason"] = "FAIL", ATTACK
    study = dataclasses.replace(
        build_study(frame),
        name=ATTACK,
        metric=ATTACK,
        invocation=Invocation(ATTACK, (ATTACK,)),
        description=f"{ATTACK}?",
    )
    address, messages = write_small(study, tmp_path), []
    page = open_page(address, 390, messages=messages)
    assert messages == [address]
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    question = "depend on the maximum traceable distance (MTD)?"
    shown = f"{ATTACK[:59]}…"
    assert page.locator("#question").inner_text() == f"How does {shown} {question}"
    described = page.locator("details:has(#run) > p")
    assert described.first.text_content() == f"{ATTACK}?"
