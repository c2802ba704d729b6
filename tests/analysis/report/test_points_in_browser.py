"""Points of figures in a browser: values on hover and focus, links, widths, dark, no scripts."""

import pytest

from analysis.report.topics import TOPICS
from tests.analysis.conftest import OpenPage, build_study, make_trials
from tests.analysis.report.test_report import write

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "png_not_drawn")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    shown = [topic for topic in TOPICS if topic.name in ("score", "trials")]
    trials = make_trials(decays=(0.75, 0.9, 0.97), times=(8,))
    # apart, so that the points of the means do not cover those of the trials
    trials["score"] += 10 * trials["seed"]
    out = tmp_path_factory.mktemp("points")
    return write(build_study(trials), out, topics=shown).page.as_uri()


def test_a_point_states_its_values_on_hover_and_focus_and_leads_to_its_trial(
    open_page: OpenPage, address: str
) -> None:
    messages: list[str] = []
    page = open_page(address, messages=messages)
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
    assert messages == [address]


def test_points_of_one_seed_are_marked_together_while_one_of_them_is_pointed_at(
    open_page: OpenPage, address: str
) -> None:
    page = open_page(address)
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


def test_without_scripts_each_point_is_a_link_with_a_title(
    open_page: OpenPage, address: str
) -> None:
    page = open_page(address, java_script_enabled=False)
    links = page.locator("#figure-mtd_curve svg.wide .points a")
    # 9 runs and 3 means, and 3 levels of the paired curve
    assert links.count() == 15
    assert str(links.first.locator("title").text_content()).startswith("Trial 0: score ")
    assert page.locator(links.first.get_attribute("href") or "none").count() == 1


@pytest.mark.parametrize(("width", "layout"), [(390, "narrow"), (768, "wide")])
def test_one_layout_is_shown_and_fits(
    open_page: OpenPage, address: str, width: int, layout: str
) -> None:
    page = open_page(address, width, color_scheme="dark")
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
