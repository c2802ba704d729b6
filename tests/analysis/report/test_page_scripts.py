"""The scripts of the page in a browser: sorting, filter, copy, points of figures; and in print.

Points of figures: values on hover and focus, links, widths, dark, without scripts.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.report.topics import TOPICS, trials
from tests.analysis.conftest import OpenPage, build_study, make_trials
from tests.analysis.report.test_report import fail, write

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "png_not_drawn")


def write_trials(study: StudyFrames, out: Path) -> str:
    """A page of the trials alone."""
    return write(study, out, topics=(trials.TOPIC,)).page.as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    frame = make_trials()
    fail(frame, 5, "out of memory")
    return write_trials(build_study(frame), tmp_path_factory.mktemp("scripts"))


@pytest.fixture
def page(open_page: OpenPage, address: str) -> "Page":
    found = open_page(address, permissions=["clipboard-read", "clipboard-write"])
    unfold(found)
    return found


def unfold(page: "Page") -> None:
    """Open the trials, or close them again."""
    page.get_by_role("heading", name="All trials").click()


def shown(page: "Page") -> "Locator":
    return page.locator("tr[id^=trial-]:visible")


def scores_of(page: "Page") -> list[str]:
    head = page.locator("table.sortable th", has_text="score").first
    column = head.evaluate("cell => cell.cellIndex")
    return page.locator(f"table.sortable td:nth-child({column + 1})").all_inner_texts()


def test_trials_are_best_first_and_sorted_by_a_button(page: "Page") -> None:
    head = page.locator("table.sortable th", has_text="score").first
    scores = [float(cell) for cell in scores_of(page)[:-1]]
    assert scores == sorted(scores, reverse=True)
    for direction, sign in (("ascending", 1), ("descending", -1)):
        head.get_by_role("button").press("Enter")
        assert head.get_attribute("aria-sort") == direction
        cells = scores_of(page)
        assert cells[-1] == "–"
        scores = [sign * float(cell) for cell in cells[:-1]]
        assert scores == sorted(scores)
    assert page.locator("[aria-sort]").count() == 1


def test_rows_are_filtered_by_words_and_conditions(page: "Page") -> None:
    field = page.get_by_label("Filter rows")
    field.fill("ema_decay=0.85 queue_size<=128")
    assert shown(page).count() == 6
    assert page.locator(".filter [role=status]").inner_text() == "6 of 24 rows"
    field.fill("MEMORY")
    assert shown(page).all_inner_texts()[0].startswith("5")
    assert shown(page).count() == 1
    page.evaluate("location.hash = '#trial-7'")
    page.locator("#trial-7").wait_for()
    assert shown(page).count() == 24
    assert field.input_value() == ""


def test_a_link_to_a_row_opens_the_section_that_is_folded(
    open_page: OpenPage, address: str
) -> None:
    page = open_page(address)
    assert shown(page).count() == 0
    page.evaluate("location.hash = '#trial-7'")
    page.locator("#trial-7").wait_for()
    assert shown(page).count() == 24
    page = open_page(f"{address}#statistics")
    page.locator("#statistics ~ *, details[open] p").first.wait_for()
    assert shown(page).count() == 0


@pytest.mark.slow
def test_a_command_is_copied_with_the_keyboard(page: "Page") -> None:
    button = page.get_by_role("button", name="Copy: Next command")
    button.focus()
    page.keyboard.press("Enter")
    page.locator(".next .unseen", has_text="Copied").wait_for(state="attached")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator(".next pre").inner_text()


@pytest.mark.slow
def test_the_printed_page_is_whole(page: "Page") -> None:
    page.get_by_label("Filter rows").fill("no row has this")
    unfold(page)
    assert page.locator("details[open]").count() == 0
    page.emulate_media(media="print")
    # the width of A4 minus its margins
    page.set_viewport_size({"width": 680, "height": 960})
    assert shown(page).count() == 24
    assert page.locator("nav, .copy, .filter").locator("visible=true").count() == 0
    assert page.locator("section:visible").count() == page.locator("section").count()
    cut = page.locator(".box, pre, table").evaluate_all(
        "all => all.filter(each => each.scrollHeight > each.clientHeight + 1"
        " && getComputedStyle(each).overflowY !== 'visible'"
        " || each.getBoundingClientRect().right > innerWidth).map(each => each.className)"
    )
    assert cut == []
    assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.slow
def test_more_trials_than_are_shown_are_filtered(open_page: OpenPage, tmp_path: Path) -> None:
    frame = make_trials(seeds=range(1_100), decays=(0.85,), times=(1,))
    page = open_page(write_trials(build_study(frame), tmp_path))
    assert len(frame) == 1_100
    unfold(page)
    assert shown(page).count() == 1_000
    best = frame.loc[frame["score"].idxmax(), "seed"]
    page.get_by_label("Filter rows").fill(f"seed={best}")
    assert page.locator(".filter [role=status]").inner_text() == "1 of 1000 rows"
    assert shown(page).get_attribute("id") == f"trial-{best}"
    assert "The page shows at most 1,000 rows; the CSV has all." in page.inner_text("#content")


@pytest.fixture(scope="module")
def points_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    shown = [topic for topic in TOPICS if topic.name in ("score", "trials")]
    trials = make_trials(decays=(0.75, 0.9, 0.97), times=(8,))
    # apart, so that the points of the means do not cover those of the trials
    trials["score"] += 10 * trials["seed"]
    out = tmp_path_factory.mktemp("points")
    return write(build_study(trials), out, topics=shown).page.as_uri()


def test_a_point_states_its_values_on_hover_and_focus_and_leads_to_its_trial(
    open_page: OpenPage, points_address: str
) -> None:
    messages: list[str] = []
    page = open_page(points_address, messages=messages)
    tip = page.locator(".tip")
    points = page.locator("#figure-mtd_curve svg.wide .points a")
    assert tip.is_hidden()
    means = page.locator('#figure-mtd_curve svg.wide .points a[aria-label^="Mean of 3 seeds"]')
    assert means.count() == 3
    means.nth(1).hover(force=True)
    text = tip.inner_text()
    assert text.startswith("Mean of 3 seeds: score ")
    assert "95 % CI" in text
    assert "MTD 18, η 0.9, K 512" in text
    page.mouse.move(1, 1)
    assert tip.is_hidden()
    stops = points.evaluate_all("all => all.filter(each => each.tabIndex === 0).length")
    assert stops == 1
    points.locator("xpath=self::*[@tabindex='0']").focus()
    first = tip.inner_text()
    assert "MTD 12" in first
    page.keyboard.press("ArrowRight")
    assert tip.is_visible()
    assert tip.inner_text() != first
    target = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("Enter")
    # the browser changes the address after the key press returns
    page.wait_for_url(f"**{target}")
    row = page.locator(f"tr{target}")
    row.wait_for()
    assert messages == [points_address]


def test_points_of_one_seed_are_marked_together_while_one_of_them_is_pointed_at(
    open_page: OpenPage, points_address: str
) -> None:
    page = open_page(points_address)
    marked = page.locator(".points a.same")
    points = page.locator('#figure-mtd_curve svg.wide .points a[data-seed="0"]')
    assert points.count() == 3
    points.first.hover(force=True)
    seeds = marked.evaluate_all("all => all.map(each => each.dataset.seed)")
    assert set(seeds) == {"0"}
    assert len(seeds) == page.locator('.points a[data-seed="0"]').count() > 3
    page.mouse.move(1, 1)
    assert marked.count() == 0
    points.last.focus()
    assert set(marked.evaluate_all("all => all.map(each => each.dataset.seed)")) == {"0"}
    page.locator('#figure-mtd_curve svg.wide .points a[aria-label^="Mean of"]').first.focus()
    assert marked.count() == 0, "a mean is of no seed"


@pytest.mark.slow
def test_without_scripts_each_point_is_a_link_with_a_title(
    open_page: OpenPage, points_address: str
) -> None:
    page = open_page(points_address, java_script_enabled=False)
    links = page.locator("#figure-mtd_curve svg.wide .points a")
    # 9 runs and 3 means, and 3 levels of the paired curve
    assert links.count() == 15
    assert str(links.first.locator("title").text_content()).startswith("Trial 0: score ")
    assert page.locator(links.first.get_attribute("href") or "none").count() == 1


@pytest.mark.parametrize(("width", "layout"), [(390, "narrow"), (768, "wide")])
@pytest.mark.slow
def test_one_layout_is_shown_and_fits(
    open_page: OpenPage, points_address: str, width: int, layout: str
) -> None:
    page = open_page(points_address, width, color_scheme="dark")
    drawing = page.locator("#figure-mtd_curve .drawing")
    assert drawing.locator(f"svg.{layout}").is_visible()
    assert drawing.locator("svg:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert drawing.evaluate("each => each.scrollWidth <= each.clientWidth")
    sizes = drawing.locator(f"svg.{layout}").evaluate(
        "svg => Array.from(svg.querySelectorAll('text'), text => { const at = text.getScreenCTM(); "
        "return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(at.a, at.b); })"
    )
    assert min(sizes) >= 9
    assert "invert" in drawing.locator(f"svg.{layout}").evaluate(
        "svg => getComputedStyle(svg).filter"
    )


@pytest.mark.parametrize("width", [390, 1440])
def test_the_caption_of_a_long_table_fits_beside_its_scrollbar(
    open_page: OpenPage, tmp_path: Path, width: int
) -> None:
    page = open_page(write_trials(build_study(make_trials(seeds=range(9))), tmp_path), width, 900)
    unfold(page)
    room, needed = page.locator(".box.tall").evaluate(
        """box => {
            const style = getComputedStyle(box), span = box.querySelector("caption span");
            const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
            return [box.clientWidth - padding - 15, span.offsetWidth];
        }"""
    )
    assert needed <= room
