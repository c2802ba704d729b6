"""The report: its files, its structure, and what it does with awkward studies."""

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab import analysis
from mtdlab.analysis.data.environment import Environment
from mtdlab.analysis.data.frames import RecordedSetting, StudyFrames
from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.analysis.report import Report, write_report
from mtdlab.analysis.report.topics import TOPICS, score
from mtdlab.analysis.report.topics import trials as trials_topic
from mtdlab.api.report import report
from mtdlab.errors import MtdlabError
from tests.analysis.conftest import build_study, make_trials, report_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "png_not_drawn")
PACKAGE = Path(str(analysis.__file__)).parent / "report"
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Outline(HTMLParser):
    """Tags that do not close in order, ids, links and headings of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        self.wrong += [name for name in values if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def write(study: StudyFrames, out: Path, **options: Any) -> Report:
    made = {"generated": "2026-01-02 03:04 UTC", "version": "0.1.0"}
    return write_report(study, out, **made | options)


def outline_of(report: Report) -> Outline:
    outline = Outline()
    outline.feed(report.page.read_text(encoding="utf-8"))
    outline.close()
    return outline


# the only address on a page: a link, which loads nothing
PAPER = "https://aclanthology.org/2022.findings-acl.248"


def text_of(report: Report) -> str:
    page = report.page.read_text(encoding="utf-8")
    page = re.sub(r"<(style|script|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def check_sound(report: Report) -> None:
    """What holds for every report, whatever the study."""
    outline = outline_of(report)
    folder = report.page.parent
    assert (outline.open, outline.wrong) == ([], [])
    assert len(outline.ids) == len(set(outline.ids))
    for link in outline.links:
        if link.startswith("#"):
            assert link[1:] in outline.ids
        elif not link.startswith(("data:image/png;base64,", PAPER)):
            assert (folder / link).is_file()
    assert {"header", "nav", "main", "footer"} <= set(outline.tags)
    assert outline.tags.count("h1") == 1
    assert report.page.stat().st_size < 3_000_000
    files = {path for path in folder.rglob("*") if path.is_file()}
    linked = {folder / link for link in outline.links if link.endswith((".md", ".tex"))}
    data = set((folder / "data").glob("*.parquet"))
    assert folder / "data" / "study.parquet" in data
    assert files == {report.page, *report.figures, *report.tables, *linked, *data}
    assert "nan" not in re.findall(r"\w+", text_of(report).lower())
    for name in ("trials", "mtd_curve"):
        assert (folder / "tables" / f"{name}.csv").is_file()


def fail(trials: pd.DataFrame, number: int, reason: str) -> None:
    trials.loc[number, "state"] = "FAIL"
    trials.loc[number, "reason"] = reason
    trials.loc[number, "score"] = np.nan


def test_a_full_study_has_every_section(report: Report) -> None:
    check_sound(report)
    assert text_of(report).count("are exploratory: not adjusted for their number") == 1
    assert [path.suffix for path in report.figures] == [".png", ".svg"] * 11
    assert " ".join(path.stem for path in report.figures[::2]) == (
        "mtd_curve mtd_published sufficiency mtd_by_batch ema_decay "
        "batch_size initial_queue queue_slices alignment_uniformity distance spectra"
    )
    text = text_of(report)
    assert "mtdlab sweep studies/mtd.yaml" in text
    assert "47 of 48 trials complete, 1 failed" in text
    assert "out of memory" in text
    assert "published: table 8 (queue_size 1024" in text
    assert "No average: the study was not scored on STS13, STS14, STS15, STS16, SICKR." in text


@pytest.mark.slow
def test_scores_chosen_on_test_are_marked_in_every_figure(
    report: Report, full: StudyFrames, tmp_path: Path
) -> None:
    assert set(full.trials["select_on"]) == {"dev"}
    words = "checkpoints chosen on the TEST pairs"
    assert words not in report.page.read_text(encoding="utf-8")
    trials = make_trials(seeds=(0, 1), decays=(0.85,), times=(1, 8)).assign(select_on="test")
    marked = write(build_study(trials), tmp_path)
    page = marked.page.read_text(encoding="utf-8")
    drawings = re.findall(r"<svg\b.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) == len(marked.figures)  # a wide and a narrow one for two files
    assert all(words in drawing for drawing in drawings)
    assert "Checkpoints were chosen on the TEST pairs" in text_of(marked)


def test_the_tables_have_what_their_readers_expect(report: Report) -> None:
    tables = report.page.parent / "tables"
    trials = pd.read_csv(tables / "trials.csv")
    assert len(trials) == 48
    expected = "number state seed ema_decay queue_size batch_size initial_queue_size mtd score"
    assert list(trials)[:9] == expected.split()
    assert {"alignment", "uniformity", "reason"} <= set(trials)
    curve = pd.read_csv(tables / "mtd_curve.csv")
    assert list(curve)[:5] == ["mtd", "n", "mean", "low", "high"]
    assert curve["mtd"].tolist() == [5, 6, 7.67, 8, 8.67, 10.7, 12, 14.7]


@pytest.mark.slow
def test_two_builds_are_the_same_bytes(report: Report, full: StudyFrames, tmp_path: Path) -> None:
    again, _ = report_of(full, tmp_path)
    for one, other in zip(
        (report.page, *report.figures, *report.tables),
        (again.page, *again.figures, *again.tables),
        strict=True,
    ):
        assert one.read_bytes() == other.read_bytes()


def test_the_page_states_its_finding_in_every_figure(report: Report) -> None:
    page = report.page.read_text(encoding="utf-8")
    findings = re.findall(r"<desc[^>]*>([^<]+)</desc>", page)
    assert len(findings) == 2 * 11
    assert all(re.search(r"\d", finding) for finding in findings)
    assert "http:" not in page
    assert "https:" not in page.replace(PAPER, "")


HOSTILE = (
    "</script><script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "<svg onload=alert(3)>",
    "<iframe src=javascript:alert(4)></iframe>",
    "<a href='https://example.org/'>a</a>",
    "</title><base href=//example.org>",
    "--><!-- <!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>",
    "' onmouseover='alert(5)",
    "` + ${alert(6)} + `",
    "{{ 7 * 7 }}{% include 'page.html' %}",
    "</style><style>@import url(//example.org)</style>",
    "]]><details open ontoggle=alert(8)>",
    "&lt;script&gt;alert(9)&lt;/script&gt;",
    "javascript:alert(10)",
    "../../etc/passwd",
    "a\x00b",
    "\x1b[31mred\x07",
    "\u202etxt.exe",
    "$x_{$ \\frac{",
    "Ж" * 300,
)
ALL_HOSTILE = "".join(HOSTILE)
# two, since each has figures of its own
PARAMETERS = (ALL_HOSTILE, "$x_{$ <b>")


def write_hostile(study: StudyFrames, trials: pd.DataFrame, out: Path) -> Report:
    """A report of a study whose every name and text is hostile."""
    trials = trials.assign(queue_slice=[*HOSTILE, "all", "all", "all", "all"])
    for name in PARAMETERS:
        trials[name] = range(24)
    fail(trials, 0, ALL_HOSTILE)
    # no database and no Arrow column holds half a character; names and commands may
    text = f"{ALL_HOSTILE}\ud800"
    study = dataclasses.replace(
        study,
        trials=trials,
        name=text,
        settings={**study.settings, **{name: RecordedSetting(name) for name in PARAMETERS}},
        metric=text,
        invocation=Invocation(text, (text,), {text: (text,)}),
        study_file=text,
        environments=(Environment(device=text, versions={text: text}),),
    )
    return write(study, out)


def assert_names_are_text(report: Report) -> None:
    """No name has become an element, a handler or an address."""
    outline = outline_of(report)
    assert outline.wrong == [], f"handlers or elements: {outline.wrong}"
    assert outline.tags.count("script") == len(list(PACKAGE.glob("*.js")))
    assert not {"img", "iframe", "base", "object", "form"} & set(outline.tags)
    check_sound(report)
    page = report.page.read_text(encoding="utf-8")
    assert '<meta http-equiv="Content-Security-Policy"' in page
    assert "{{ 7 * 7 }}" in page


@pytest.mark.usefixtures("figures_not_drawn")
def test_text_in_tables_is_no_formula_of_a_spreadsheet(tmp_path: Path) -> None:
    trials = make_trials()
    formulas = ["=cmd|'/C calc'!A0", '=HYPERLINK("http://x")', "@SUM(1)", "+1+cmd|x", "\tx", "-2+3"]
    plain = ["-0.5", "+1e-3", "a=b"]
    text = [*formulas, *plain] + ["all"] * (len(trials) - 9)
    study = build_study(trials.assign(queue_slice=text, **{"=setting": 1.0}))
    write(study, tmp_path, topics=(trials_topic.TOPIC,))
    table = pd.read_csv(tmp_path / "tables" / "trials.csv", dtype=str)
    assert table["queue_slice"].tolist()[:9] == [f"'{formula}" for formula in formulas] + plain
    assert "'=setting" in table
    assert "=setting" not in table


@pytest.mark.slow
def test_hostile_names_are_text(tmp_path: Path) -> None:
    trials = make_trials()
    assert_names_are_text(write_hostile(build_study(trials), trials, tmp_path))


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
        frame.loc[3, "reason"] = ""
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


@pytest.mark.usefixtures("figures_not_drawn")
@pytest.mark.parametrize(
    ("state", "figures", "sentences"),
    [
        ("0", 0, ["Planned 0 of 1 trial complete, 1 waiting", "Run it (1 trial). "]),
        pytest.param(
            *("0", 0, ["No trial is complete with a score.", "No trial has been started."]),
            marks=pytest.mark.slow,
        ),
        pytest.param("1", 3, ["all scored trials have the same MTD"], marks=pytest.mark.slow),
        ("failed", 0, ["All 24 trials failed", "FAIL reason 0 of some length", "not recorded"]),
        ("running", 7, ["Running 22 of 24 trials complete, 2 running"]),
        ("NaN", 0, ["24 completed trials excluded for lack of a score."]),
    ],
)
def test_an_awkward_study_has_a_sound_page_that_says_so(
    state: str, figures: int, sentences: list[str], tmp_path: Path
) -> None:
    study = dataclasses.replace(make_state(state), study_file="", invocation=NO_INVOCATION)
    report = write(study, tmp_path)
    check_sound(report)
    assert len(report.figures) == 2 * figures
    for sentence in sentences:
        assert sentence in text_of(report)
    header = (tmp_path / "tables" / "mtd_curve.csv").read_text(encoding="utf-8")
    assert header.startswith("mtd,n,mean,low,high")


@pytest.mark.usefixtures("figures_not_rendered")
def test_a_later_report_leaves_nothing_of_an_earlier_one(tmp_path: Path) -> None:
    assert write(build_study(make_trials().iloc[:1]), tmp_path).figures
    own = tmp_path / "tables" / "my_notes.csv"
    own.write_text("kept", encoding="utf-8")
    report = write(build_study(make_trials().iloc[:0]), tmp_path)
    assert list((tmp_path / "figures").iterdir()) == []
    assert set((tmp_path / "tables").iterdir()) == {own, *report.tables}


def test_an_interrupted_report_leaves_the_old_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = build_study(make_trials().iloc[:0])
    before = write(study, tmp_path).page.read_bytes()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write(study, tmp_path, generated="later")
    assert (tmp_path / "index.html").read_bytes() == before
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.usefixtures("figures_not_rendered")
@pytest.mark.parametrize(
    ("count", "topics"),
    [
        pytest.param(1_200, (score.TOPIC, trials_topic.TOPIC), marks=pytest.mark.slow),
        pytest.param(10_000, TOPICS, marks=pytest.mark.slow),
    ],
    ids=["1200", "10000"],
)
def test_thousands_of_trials_fit_a_page(tmp_path: Path, count: int, topics: Any) -> None:
    trials = make_trials(seeds=range(25), times=range(1, 1 + count // 100), batches=(64, 128))
    for number in range(0, count, 50):
        fail(trials, number, "a reason of some length " * 40)
    assert len(trials) == count
    report = write(build_study(trials), tmp_path, topics=topics)
    check_sound(report)
    shown = f"{count:,} trials, best first by score. The page shows at most 1,000 rows; the CSV has"
    assert shown in text_of(report)
    assert len(pd.read_csv(tmp_path / "tables" / "trials.csv")) == count


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_a_page_does_not_replace_that_of_another_databases_study(tmp_path: Path) -> None:
    """Of two studies of one name, told by their trials; the page of the same is made again."""
    few = make_trials(decays=(0.85,), times=(1, 8))
    one = build_study(few.assign(wall_seconds=few["number"] + 1.5))
    report(one, out=tmp_path)
    page = tmp_path / one.name / "index.html"
    before = page.read_bytes()
    more = make_trials(seeds=range(4), decays=(0.85,), times=(1, 8))
    grown = build_study(more.assign(wall_seconds=more["number"] + 1.5))
    other = build_study(few.assign(wall_seconds=few["number"] + 1.75))
    with pytest.raises(MtdlabError, match=r"is the page of another study .*; name another folder"):
        report(other, out=tmp_path)
    assert page.read_bytes() == before
    report(other, out=tmp_path / "other")
    # what the trials are told by stands in one file of its data
    (tmp_path / one.name / "data" / "spectra.parquet").unlink()
    with pytest.raises(MtdlabError, match="is the page of another study"):
        report(other, out=tmp_path)
    report(grown, out=tmp_path)
    assert page.read_bytes() != before
