"""The claims of the papers on pages and in the command's table."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from mtdlab.analysis.data.claims import load_claims
from mtdlab.analysis.data.frames import Plan
from mtdlab.analysis.inference.claims import SMALL, SMALLER
from mtdlab.analysis.report import multi_study, write_multi_study
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.headline import build_headline
from mtdlab.analysis.report.topics import claims
from tests.analysis.conftest import report_of
from tests.analysis.questions.test_claim import slices, study_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "figures_not_drawn")


@pytest.fixture(scope="module", autouse=True)
def claims_not_asked() -> None:
    """They are asked here."""


SLICES = slices(40, 38, 37, 36, 41, name="table8-queue-slices-small")
CLUSTERS = study_of(
    [({"queue_clusters": count}, 40.0 + count / 10) for count in (0, 5, 10)], name="clusters"
)


def tabulate(*studies: object, **options: bool) -> pd.DataFrame:
    return claims.tabulate_claims([StudyContext(study) for study in studies], **options)  # type: ignore[arg-type]


def test_a_table_begins_with_what_is_shown() -> None:
    table = tabulate(SLICES, CLUSTERS)
    assert [*table] == [*claims.COLUMNS]
    assert table["verdict"].tolist() == ["replicated"] * 2 + ["contradicted", SMALL]
    assert table["name"].tolist()[:2] == ["slice-middle", "clusters-ten"]
    middle = table.iloc[0]
    assert (middle["published"], middle["study"]) == ("+0.92", "table8-queue-slices-small")
    assert middle["mean"] == pytest.approx(2, abs=0.3)
    assert "4 seeds; encoder not recorded; 320,000 sentences; " in middle["scale"]
    # two of four claims, each with the share of Holm's rule
    assert set(table["holm"]) <= {"yes", "no"}
    assert claims.summarise_claims(table) == (
        f"2 replicated, 1 contradicted and 1 {SMALL} of 4 tested claims"
    )
    assert "chance would make at most 0.1 as claimed" in claims.explain_claims(table)
    alone = table.assign(holm="no")
    first = "2 replicated (none also with one error rate for all tests), 1 contradicted (none likew"
    assert claims.summarise_claims(alone).startswith(first)
    weak = table.assign(holm=["yes", "yes", "no", "yes"])
    first = "2 replicated (2 also with one error rate for all tests), 1 contradicted (none likew"
    assert claims.summarise_claims(weak).startswith(first)
    shown = claims.show_claims(alone)
    [verdict] = [at for at, column in enumerate(shown.columns) if "verdict" in column.label]
    decided = ["✓ replicated", "✓ replicated", "✗ contradicted", f"≪ {SMALL}"]
    assert [row[verdict].partition(":")[0] for row in shown.rows] == [
        f"{name}, not with Holm's rule for all tests" for name in decided
    ]


def test_every_claim_has_a_row_with_its_reason() -> None:
    table = tabulate(SLICES, every=True)
    assert {*table["name"]} == {claim.name for claim in load_claims()}
    missing = table[table["study"] == ""].set_index("name")
    assert (missing["verdict"] == "not tested").all()
    assert missing["why"]["batch-best"] == (
        "no study of it here; studies/paper/table6b-batch-size.yaml asks it"
    )
    assert missing["why"]["mixcse-weight"] == "the slides print no ablation of λ"
    assert missing["published"]["batch-best"] == "+0.47"
    nothing = tabulate(every=True)
    assert len(nothing) == len(load_claims())
    assert claims.summarise_claims(nothing) == f"None of {len(nothing)} claims was tested"
    assert len(tabulate()) == 0


def test_the_first_screen_of_a_study_has_its_claims(tmp_path: Path) -> None:
    lines = build_headline(StudyContext(SLICES)).claims
    assert len(lines) == 2
    assert lines[0].startswith("✓ replicated: “The middle half of the queue scores more than")
    assert re.search(
        r"Here \+2\.\d\d points \(95 % CI 1\.\d\d to 2\.\d\d\); published \+0\.92 points$", lines[0]
    )
    assert lines[1].startswith("✗ contradicted: ")
    many = claims.list_lines(tabulate(SLICES, CLUSTERS), most=3)
    assert len(many) == 4
    assert many[-1].startswith("3 of 4 tests shown, ")
    assert many[-1].endswith(": all are in the table below")
    report, page = report_of(SLICES, tmp_path, claims.TOPIC)
    assert 'aria-label="Claims of the papers"' in page
    assert 'href="#claims"' in page
    assert "1 replicated and 1 contradicted of 2 tested claims" in page
    assert [path.name for path in report.tables] == ["claims.csv"]


def test_a_study_of_nothing_published_has_no_claims(tmp_path: Path) -> None:
    other = study_of([({"learning_rate": rate}, 40.0) for rate in (1e-3, 2e-3)])
    assert build_headline(StudyContext(other)).claims == ()
    _, page = report_of(other, tmp_path, claims.TOPIC)
    assert "claims" not in page.partition("</style>")[2]


def test_verdicts_that_no_claim_has_are_not_explained(tmp_path: Path) -> None:
    alone = replace(SLICES, trials=SLICES.trials[SLICES.trials["seed"] == 0])
    _, page = report_of(alone, tmp_path, claims.TOPIC)
    assert "None of 2 claims was tested." in page
    both = [alone, replace(alone, name="again")]
    written = write_multi_study(both, tmp_path, name="paper", generated="now", version="0")
    for text in (page, written.page.read_text()):
        assert "The middle half of the queue scores more" in text
        assert "Bonferroni" not in text


def test_a_page_over_several_studies_begins_with_the_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr(StudyContext, "__post_init__", lambda context: made.append(context.study))
    written = write_multi_study(
        [SLICES, CLUSTERS], tmp_path, name="paper", generated="now", version="0"
    )
    page = written.page.read_text(encoding="utf-8")
    assert f"<h1>2 replicated, 1 contradicted and 1 {SMALL} of 4 tested claims</h1>" in page
    assert 'href="../table8-queue-slices-small/index.html#queue-slices"' in page
    own = (tmp_path / "table8-queue-slices-small" / "index.html").read_text(encoding="utf-8")
    assert 'id="queue-slices"' in own
    sections = re.findall(r'<h2 id="(\w+)">', page)
    assert sections[:2] == ["contents", "claims"]
    # the differences stand beside the answer
    assert page.index('<figure id="figure-claims" class=main>') < page.index('<h2 id="claims">')
    # the results of one for all that is said of the study, and those of the curves
    assert sum(study is SLICES for study in made) <= 2
    rows = pd.read_csv(written.page.parent / "tables" / "claims.csv")
    assert len(rows) == len(load_claims())


def test_the_tested_claims_on_scores_are_drawn_with_the_published_differences() -> None:
    table = tabulate(SLICES, CLUSTERS, every=True)
    drawing = claims.draw_claims(table)["claims"]
    ax = Figure().subplots()
    [(_, panel)] = drawing.panels
    panel(ax)
    lines = {str(line.get_label()): line for line in ax.get_lines()}
    replicated = table[table["verdict"] == "replicated"]
    assert [*map(float, np.asarray(lines["replicated"].get_xdata()))] == pytest.approx(
        [*replicated["mean"]]
    )
    [published] = [line for line in ax.get_lines() if line.get_marker() == "D"]
    assert float(np.asarray(published.get_xdata())[0]) == pytest.approx(0.92)
    assert len(ax.get_yticks()) == 4
    low, high = ax.get_xlim()
    assert low == pytest.approx(-high)
    assert claims.draw_claims(tabulate(every=True)) == {}
    assert drawing.caption.startswith("The paired difference")
    several = pd.concat([table[table["study"] != ""]] * 4, ignore_index=True)
    caption = claims.draw_claims(several)["claims"].caption
    assert caption.startswith("12 of the 16 tests on scores, from each verdict in turn. The paired")


def test_every_claims_figure_is_in_a_section_that_pages_have() -> None:
    from mtdlab.analysis.report.topics import TOPICS

    assert {*claims.ANCHORS.values()} <= {topic.name for topic in TOPICS}
    # a study of one batch size has the claims at that size, and no figure by batch size
    assert "batches" not in claims.ANCHORS.values()


def test_a_row_leads_to_a_section_that_its_studys_page_has() -> None:
    """Its figure's, else that of its claims; without a page it has no link."""
    table = tabulate(SLICES, CLUSTERS, every=True)
    sections = {"table8-queue-slices-small": ("queue-slices", "claims"), "clusters": ("claims",)}
    shown = claims.show_claims(table, sections)
    pairs = zip(table["study"], shown.links, strict=True)
    slices_page = "../table8-queue-slices-small/index.html"
    assert {*pairs} == {
        ("table8-queue-slices-small", f"{slices_page}#queue-slices"),
        ("clusters", "../clusters/index.html#claims"),
        ("", ""),
    }
    without = claims.show_claims(table, {"table8-queue-slices-small": ("claims",)})
    assert {*without.links} == {f"{slices_page}#claims", ""}


def test_a_scale_without_steps_names_no_sentences() -> None:
    untold = replace(CLUSTERS, trials=CLUSTERS.trials.assign(steps=np.nan))
    assert not tabulate(untold)["scale"].str.contains("sentences").any()


def test_the_claims_that_have_room_are_replicated_and_contradicted_ones() -> None:
    """Those that are replicated with one error rate for all come first, the undecided last."""
    verdicts = ["replicated", "replicated", "contradicted", "contradicted", "undecided"]
    sizes: dict[str, object] = {
        "mean": 1.0,
        "low": 1.0,
        "high": 1.0,
        "level": 0.95,
        "unit": "points",
    }
    named = [
        {"verdict": verdict, "claim": f"{at}.", "holm": "no" if at == 0 else "yes", "published": ""}
        | sizes
        for at, verdict in enumerate(verdicts)
    ]
    table = pd.DataFrame(named)
    shown = {most: claims.list_lines(table, most) for most in (2, 4, 5)}
    assert [line[:2] for line in shown[2]] == ["✓ ", "✗ ", "2 "]
    assert "“1.”" in shown[2][0]
    assert [line[:2] for line in shown[4]] == ["✓ ", "✓ ", "✗ ", "✗ ", "4 "]
    assert [line[:2] for line in shown[5]] == ["✓ ", "✓ ", "✗ ", "✗ ", "? "]


def test_a_claim_has_no_interval_of_a_difference_that_the_answer_states() -> None:
    context = StudyContext(
        study_of([({"method": name}, at) for name, at in (("mocose", 40.0), ("simcse", 38.0))])
    )
    assert context.answer.effect is not None
    [row] = (
        claims.find_claims(context).query("name.str.contains('simcse')").head(1).to_dict("records")
    )
    assert abs(row["mean"]) == pytest.approx(abs(context.answer.effect.size.mean))
    assert np.isnan([row["low"], row["high"]]).all()
    alone = claims.tabulate_claims([context]).set_index("name").loc[row["name"]]
    assert np.isfinite([alone["low"], alone["high"]]).all()


def test_what_is_as_claimed_but_smaller_is_named_so_everywhere() -> None:
    table = tabulate(study_of([({"queue_clusters": count}, 40 + count / 50) for count in (5, 0)]))
    [row] = table.to_dict("records")
    assert row["verdict"] == SMALL
    loses = study_of([({"queue_clusters": 0}, 40.6), ({"queue_clusters": 5}, 40.0)])
    jitter = 0.1 * loses.trials["seed"] * (loses.trials["queue_clusters"] == 5)
    seeds = 40.0 + loses.trials["seed"] + 0.6 * (loses.trials["queue_clusters"] == 0)
    smaller = replace(loses, trials=loses.trials.assign(score=seeds + jitter), name="clusters")
    table = tabulate(smaller)
    [row] = table.to_dict("records")
    # 2.04 points are printed
    assert row["verdict"] == SMALLER
    assert row["holm"] == "yes"
    assert claims.summarise_claims(table) == f"1 {SMALLER} of 1 tested claim"
    [line] = claims.list_lines(table)
    assert line.startswith(f"↓ {SMALLER}: “Five cluster centroids")
    assert f"↓ {SMALLER}" in claims.show_claims(table).rows[0]
    ax = Figure().subplots()
    [(_, panel)] = claims.draw_claims(table)["claims"].panels
    panel(ax)
    assert SMALLER in [line.get_label() for line in ax.get_lines()]
    assert f"As{SMALLER[2:]}: so too" in claims.RULE


def test_the_rules_say_what_is_corrected_and_what_is_not() -> None:
    assert "support takes all of them and needs no correction" in claims.RULE
    assert "corrected for their number (Bonferroni)" in claims.RULE


def test_studies_in_which_all_runs_have_one_learning_rate_are_counted() -> None:
    trials = SLICES.trials
    one = StudyContext(replace(SLICES, trials=trials.assign(learning_rate=1e-3)))
    rates = np.where(trials["number"] % 2, 1e-3, 1e-2)
    two = StudyContext(replace(SLICES, trials=trials.assign(learning_rate=rates)))
    assert multi_study.describe_rates([one, two]).startswith(
        "In 1 of 2 studies all runs have one learning rate."
    )
    assert multi_study.describe_rates([two]) == ""


def test_facts_that_differ_between_many_studies_are_left_to_pages_that_may_not_be_kept() -> None:
    fewer = replace(SLICES, trials=SLICES.trials[SLICES.trials["seed"] < 3])
    few = [StudyContext(SLICES), StudyContext(fewer)]
    stated = multi_study.lead_with_answers(few).facts
    assert [*stated] == ["Varied", "Data and metric", "Without training"]
    assert "4 seeds" in stated["Varied"]
    assert "3 seeds" in stated["Varied"]
    shared = multi_study.lead_with_answers(few * 4).facts
    assert [*shared] == ["Data and metric", "Without training"]


def test_tests_are_counted_apart_from_claims() -> None:
    again = replace(SLICES, name="again")
    worse = slices(30, 38, 37, 36, 41, name="worse")
    table = tabulate(SLICES, again, worse)
    assert claims.summarise_claims(table).endswith(" of 6 tests of 2 claims")
    text = claims.compare_tests(table)
    assert text.startswith(
        "2 claims have more than one test. With the same verdict: 1 contradicted. With different"
    )
    assert text.endswith(
        "both ends” (replicated in table8-queue-slices-small; replicated in again; contradicted in "
        "worse)."
    )
    assert claims.compare_tests(tabulate(SLICES)) == ""


def test_tests_of_the_same_runs_are_not_counted_as_evidence_of_their_own() -> None:
    """The same runs have equal scores and geometry, in whichever study and under any name."""
    order = np.arange(len(SLICES.trials))
    recorded = replace(
        SLICES, trials=SLICES.trials.assign(alignment=order / 7, uniformity=-order / 9)
    )
    again = replace(recorded, name="again")
    other = replace(recorded, name="other", trials=recorded.trials.assign(alignment=1 + order / 7))
    own = tabulate(recorded, other)
    assert (own["same_runs"] == "").all()
    # the middle of the queue is a side of both claims of a study
    assert own["sharing"].tolist() == [1, 1, 1, 1]
    assert claims.explain_claims(own).endswith(
        "Not every test is evidence of its own: in 4 some of the same runs."
    )
    table = tabulate(recorded, again, other)
    assert claims.explain_claims(table).endswith(
        "of its own: in 4 the same runs are compared as in another one, in 2 some of the same runs."
    )
    [verdict, *_] = [row[1] for row in claims.show_claims(table).rows]
    assert verdict == (
        "✓ replicated: same runs as “The middle half of the queue scores more than the newest ha…” "
        "in again"
    )
    assert claims.show_claims(own).rows[0][1] == "✓ replicated: shares runs with 1 other test"
    # a part of the seeds
    part = replace(again, trials=again.trials[again.trials["seed"] < 3])
    assert (tabulate(recorded, part)["same_runs"] != "").all()
    # a claim the other way round compares the same runs
    swapped = [frozenset("ab"), frozenset("cd")]
    assert claims._is_part([frozenset("c"), frozenset("a")], swapped)
    assert not claims._is_part([frozenset("c"), frozenset("d")], swapped)


@pytest.mark.parametrize(
    ("tests", "most"), [(1, "0.025"), (4, "0.1"), (50, "1.3"), (40, "1"), (57, "1.5"), (401, "11")]
)
def test_the_most_that_chance_gives_is_rounded_up(tests: int, most: str) -> None:
    table = pd.DataFrame({"verdict": ["undecided"] * tests, "same_runs": "", "sharing": 0})
    assert f"chance would make at most {most} as claimed on average" in claims.explain_claims(table)


def test_a_difference_that_is_rounded_to_0_has_no_sign() -> None:
    row: dict[str, object] = {"verdict": "not tested", "claim": "A.", "published": ""}
    row |= {"holm": "", "why": "", "same_runs": "", "sharing": 0}
    row |= {"source": "s", "study": "a", "difference": "b minus c", "scale": "2 seeds"}
    row |= {"mean": -0.001, "low": -0.004, "high": 0.004, "level": 0.95, "unit": "points"}
    [cells] = claims.show_claims(pd.DataFrame([row])).rows
    assert cells[-1] == "0.00 points (95 % CI 0.00 to 0.00): b minus c; a; 2 seeds"


@pytest.mark.parametrize(
    ("measure", "unit"),
    [
        ("score", "points"),
        ("transfer", "points"),
        ("final", "points"),
        ("rank", "in effective rank"),
        ("evenness", "in uniformity"),
        ("nearness", "in distance"),
    ],
)
def test_a_size_has_the_unit_of_its_measure(
    monkeypatch: pytest.MonkeyPatch, measure: str, unit: str
) -> None:
    [claim] = [claim for claim in load_claims() if claim.name == "slice-middle"]
    other = replace(claim, measure=measure)
    monkeypatch.setattr(claims, "load_claims", lambda: (other,))
    monkeypatch.setattr("mtdlab.analysis.questions.claim.load_claims", lambda: (other,))
    scores = SLICES.trials.set_index("number")["score"]
    read = "mtdlab.analysis.questions.claim.measure_runs"
    monkeypatch.setattr(read, lambda *_: scores)
    table = tabulate(SLICES)
    [line] = claims.list_lines(table)
    assert re.search(rf"Here [+−-]?\d+\.\d\d {unit} \(95 % CI [^)]*\)", line)
    assert line.count("points") == (2 if unit == "points" else 0)
    [cells] = claims.show_claims(table).rows
    assert re.match(rf"[+−-]?\d+\.\d\d {unit} \(95 % CI ", cells[-1])


def test_the_interval_is_that_by_which_the_verdict_is_decided() -> None:
    """One of three differences contradicts by an interval at 98.3 %, and none at 95 %."""
    table = tabulate(slices(30, 38, 37, 36, 41)).set_index("name")
    row = table.loc["slice-middle"]
    assert (row["verdict"], row["level"]) == ("contradicted", pytest.approx(1 - 0.05 / 3))
    shown = [cells[-1] for cells in claims.show_claims(table.reset_index()).rows]
    assert any("points (98.3 % CI " in cell for cell in shown)
    assert "a higher level than 95 %" in claims.RULE


def test_a_claim_with_a_margin_says_how_large_it_is() -> None:
    batches = [
        ({"method": "simcse", "batch_size": size}, 50 - size / 32) for size in (64, 128, 256)
    ]
    study = study_of(batches, name="simcse-batch-size")
    [why] = tabulate(study).query("claim.str.contains('does not gain a point')")["why"]
    assert why == "the margin is 1 point"


def test_the_table_of_claims_is_narrow() -> None:
    """A page has room for 120 characters; cells of up to 40 are not wrapped, others at 28."""
    shown = claims.show_claims(tabulate(SLICES, CLUSTERS, every=True))
    columns = zip(*shown.rows, strict=True)
    widths = [max(28 if len(cell) > 40 else len(cell) for cell in column) for column in columns]
    assert sum(widths) < 110
    assert shown.rows[0][0].endswith("[MoCoSE, table 8]")


def test_the_scale_names_the_values_that_are_averaged_over() -> None:
    points = [
        ({"queue_clusters": count, "learning_rate": rate}, 40.0 + count)
        for count in (0, 5)
        for rate in (1e-3, 3e-3)
    ]
    [scale] = tabulate(study_of(points))["scale"]
    assert "averaged over learning_rate 0.001, 0.003" in scale


def test_a_page_says_that_seeds_were_added_after_trials_had_started() -> None:
    def plan(trials: int, *looks: int) -> Plan:
        return Plan(trials, {"looks": [*looks]}, "")

    added = replace(SLICES, name="a", plans=(plan(0, 3), plan(15, 6)))
    assert multi_study.describe_added_seeds([SLICES, added]) == (
        "The number of seeds was raised after trials had started, from 3 to 6 in a. Where a look "
        "at results led to that, no interval counts it."
    )
    many = [replace(added, name=str(number)) for number in range(7)]
    assert "from 3 to 6 in 7 studies. " in multi_study.describe_added_seeds(many)
    # looks that were planned, a change before the first trial, and fewer seeds
    for plans in ((plan(0, 3, 6),), (plan(0, 3), plan(0, 6)), (plan(0, 6), plan(5, 3))):
        assert multi_study.describe_added_seeds([replace(SLICES, plans=plans)]) == ""
