"""Synthetic studies from formulas, for which the correct result is known."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats

from mtdlab.analysis.data.environment import Environment, RecordedCorpus, RecordedEncoder
from mtdlab.analysis.data.frames import RecordedSetting, Settings, StudyFrames
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.measures.trace import d_trace
from mtdlab.analysis.notebook import Study
from mtdlab.analysis.report import write_report
from mtdlab.analysis.report.topics import base

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = shutil.which("chromium")
Shape = Callable[[float], float]
MakeStudy = Callable[..., StudyFrames]
OpenPage = Callable[..., "Page"]


SETTINGS = {
    setting.name: setting
    for setting in (
        RecordedSetting("method", default="mocose"),
        RecordedSetting("ema_decay", "η"),
        RecordedSetting("queue_size", "K"),
        RecordedSetting("batch_size", "N"),
        RecordedSetting("queue_clusters", default=0),
        RecordedSetting("augmentation", default="none"),
        RecordedSetting("fgsm_epsilon", default=5e-9),
        RecordedSetting("projection_layers", default=1),
        RecordedSetting("prediction_layers", default=2),
        *map(
            RecordedSetting,
            ("initial_queue_size", "queue_slice", "prediction_dim", "learning_rate"),
        ),
        *map(
            RecordedSetting,
            ("in_batch_negatives", "ema_decay_end", "steps", "encoder", "select_on"),
        ),
    )
}


def level_score(mtd: float) -> float:
    """An inverted U in log MTD, best at 8.667 and 3 points lower at either end."""
    return 40 - 12 * float(np.log(mtd / 8.667)) ** 2


def make_trials(
    *,
    seeds: Sequence[int] = (0, 1, 2),
    decays: Sequence[float] = (0.75, 0.85),
    times: Sequence[int] = (1, 2, 4, 8),
    batches: Sequence[int] = (64,),
    shape: Shape = level_score,
    noise: float = 0.2,
    draw: int = 0,
) -> pd.DataFrame:
    """A complete grid: score = shape(mtd) + 5 points of seed effect + noise."""
    rng = np.random.default_rng(draw)
    effects = dict(zip(seeds, rng.normal(scale=5, size=len(seeds)), strict=True))
    rows = [
        (seed, decay, multiple * batch, batch, d_trace(decay, multiple * batch, batch))
        for batch, decay, multiple, seed in product(batches, decays, times, seeds)
    ]
    names = ["seed", "ema_decay", "queue_size", "batch_size", "mtd"]
    trials = pd.DataFrame(rows, columns=names)
    jitter = rng.normal(scale=noise, size=len(trials))
    trials["score"] = trials["mtd"].map(shape) + trials["seed"].map(effects) + jitter
    trials["alignment"] = 0.2 + 0.01 * trials["mtd"] + 0.01 * jitter
    trials["uniformity"] = -2.5 + 0.02 * trials["mtd"] + 0.01 * jitter
    trials.insert(0, "number", np.arange(len(trials)))
    return trials.assign(
        state="COMPLETE",
        reason="",
        initial_queue_size=32,
        queue_slice="all",
        mean_cosine=0.1,
        score_before=30.0,
        wall_seconds=12.5,
        peak_memory=6e8,
    )


def make_spectra(trials: pd.DataFrame, *, dimension: int = 24) -> pd.DataFrame:
    """Spectra that decay as a power of the index, more slowly after training."""
    index = np.arange(1, dimension + 1)
    rows = {}
    for number, mtd in zip(trials["number"], trials["mtd"], strict=True):
        rows[(number, "before")] = 10 * index**-1.5
        rows[(number, "after")] = 10 * index ** -(0.5 + 0.01 * mtd)
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index = pd.MultiIndex.from_tuples(list(rows), names=["number", "moment"])
    return frame


def make_scores(trials: pd.DataFrame) -> pd.DataFrame:
    """The dev score and two tasks of each run."""
    tasks = ("sts_dev", "STS12", "STSB")
    parts = [trials[["number", "score"]].assign(task=task) for task in tasks]
    return pd.concat(parts)[["number", "task", "score"]]


USED = Environment(
    corpus=RecordedCorpus("builtin", 24_000, "sentences", "0f" * 32),
    encoder=RecordedEncoder("builtin", 890_000),
    device="cpu",
)


def build_study(trials: pd.DataFrame, *, planned: int | None = None) -> StudyFrames:
    """The trials as a study with all frames and facts."""
    done = trials[trials["state"] == "COMPLETE"]
    return Study(
        name="mtd",
        metric="sts_average",
        planned=len(trials) if planned is None else planned,
        trials=trials,
        spectra=make_spectra(done) if len(done) else pd.DataFrame(),
        scores=make_scores(done),
        study_file="study: mtd\nmetric: sts_average\nsampler: grid\n",
        invocation=Invocation("sweep", ("studies/mtd.yaml",)),
        environments=(USED,),
        settings=SETTINGS,
        methods={"mocose": "MoCoSE", "simcse": "SimCSE"},
    )


def scores_of(items: ItemScores) -> Floats:
    """Scores x 100 (N,): the mean over tasks of the rank correlations, or of the values."""
    scores = []
    for begin, end in pairwise([0, *np.cumsum(list(items.tasks.values()))]):
        values = items.values[:, begin:end]
        if items.gold is None:
            scores.append(values.mean(axis=1, dtype=np.float64))
        else:
            ranks = stats.rankdata(values, axis=1), stats.rankdata(items.gold[begin:end])
            scores.append(100 * np.corrcoef(*ranks)[-1, :-1])
    return np.asarray(np.mean(scores, axis=0))


def report_of(study: StudyFrames, out: Path, *topics: object) -> tuple[Any, str]:
    """The report on a study, by default with all topics, and its page as text."""
    options = {"topics": topics} if topics else {}
    report = write_report(study, out, generated="now", version="0", **options)
    return report, report.page.read_text(encoding="utf-8")


@contextmanager
def asking_no_claims() -> Iterator[None]:
    """Studies are about no published claim: asking all takes two fifths of a first screen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtdlab.analysis.questions.claim.load_claims", lambda: ())
        yield


@pytest.fixture(scope="module", autouse=True)
def claims_not_asked() -> Iterator[None]:
    """Modules whose tests read claims have a fixture of this name that does nothing."""
    with asking_no_claims():
        yield


@pytest.fixture(scope="session")
def trials_of() -> Callable[..., pd.DataFrame]:
    return make_trials


@pytest.fixture(scope="session")
def settings() -> Settings:
    return SETTINGS


@pytest.fixture(scope="session")
def study_of() -> MakeStudy:
    return build_study


@contextmanager
def writing_no_png() -> Iterator[None]:
    """Write empty PNG files and compute no layout: each takes as long as the SVG of both widths.

    The layout of every figure is that of `tests/analysis/figures/test_figure_checks.py`.
    """

    def compose(*arguments: Any, **options: Any) -> Figure:
        figure = composed(*arguments, **options)
        figure.set_layout_engine("none")
        return figure

    composed = base.compose
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtdlab.analysis.figures.to_png", lambda _: b"\x89PNG\r\n\x1a\n")
        patch.setattr(base, "compose", compose)
        yield


@pytest.fixture(scope="module")
def png_not_drawn() -> Iterator[None]:
    """`writing_no_png`, for modules that look at no PNG file."""
    with writing_no_png():
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium; a test that uses it is skipped where playwright or chromium is missing."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def plain_page(browser: "Browser") -> "Page":
    """The page of a context without options: another one takes longer than what it shows."""
    return browser.new_context().new_page()


@pytest.fixture
def open_page(browser: "Browser", plain_page: "Page") -> Iterator[OpenPage]:
    """Open an address at a width and height, in a context of its own if that has options.

    What it logs and requests is appended to `messages`. Without options it is the same page each
    time, as it is new.
    """
    contexts: list[BrowserContext] = []
    listening: list[tuple[Page, str, Callable[[Any], None]]] = []

    def listen(page: "Page", event: str, text_of: Callable[[Any], str], seen: list[str]) -> None:
        listening.append((page, event, lambda value: seen.append(text_of(value))))
        page.on(*listening[-1][1:])

    def opened(
        address: str,
        width: int = 1280,
        height: int = 800,
        messages: list[str] | None = None,
        **options: Any,
    ) -> "Page":
        page, seen = plain_page, [] if messages is None else messages
        if options:
            contexts.append(browser.new_context(**options))
            page = contexts[-1].new_page()
        else:
            page.goto("about:blank")
            page.emulate_media(media="screen", color_scheme="light")
            page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": height})
        page.set_default_timeout(5_000)
        listen(page, "console", lambda message: message.text, seen)
        listen(page, "pageerror", str, seen)
        listen(page, "dialog", lambda dialog: dialog.message, seen)
        listen(page, "request", lambda request: request.url, seen)
        page.goto(address)
        return page

    yield opened
    for page, event, handler in listening:
        page.remove_listener(event, handler)
    for context in contexts:
        context.close()
