"""One difference has one interval on a page, whichever sections speak of it."""

import html
import re
from collections import defaultdict
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pandas as pd
import pytest

from mtdlab.analysis.data.frames import Plan, StudyFrames
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import TOPICS
from tests.analysis.conftest import build_study, make_trials

GALLERY = Path(__file__).parents[3] / "docs" / "gallery"
_NUMBER = r"[+−-]?\d+\.\d\d"
_STATED = re.compile(rf"({_NUMBER})(?: points)?[ (|]{{1,3}}[\d.]+ % CI ({_NUMBER}) to ({_NUMBER})")
# as a claim states it
_CLAIMED = re.compile(rf"([+−]\d+\.\d\d) \(({_NUMBER}) to ({_NUMBER})\)")


def find_intervals(text: str) -> dict[float, set[tuple[float, float]]]:
    """The intervals of each difference in a text, by its size, whichever way it is subtracted."""
    found = defaultdict(set)
    read = html.unescape(text)
    for match in chain(_STATED.finditer(read), _CLAIMED.finditer(read)):
        size, low, high = (float(number.replace("−", "-")) for number in match.groups())
        found[abs(size)].add((low, high) if size >= 0 else (-high, -low))
    return found


def write_page(study: StudyFrames) -> str:
    """What a page says of a study: its answer, and the text and tables of its sections."""
    context = StudyContext(study)
    parts = [context.answer.sentence]
    for topic in TOPICS:
        if contents := topic.build(context):
            parts += contents.text
            for table in contents.tables:
                parts += [" | ".join(row) for row in table.rows]
    return "\n".join(parts)


@pytest.fixture
def crossed() -> pd.DataFrame:
    rates = [
        make_trials(decays=(0.5, 0.75, 0.9), times=(2,), seeds=range(4), draw=draw).assign(
            learning_rate=rate
        )
        for draw, rate in enumerate((1e-4, 1e-3))
    ]
    trials = pd.concat(rates, ignore_index=True)
    trials["score"] += 2.0 * (trials["learning_rate"] > 5e-4) * (trials["ema_decay"] > 0.8)
    return trials.assign(number=range(len(trials)))


@pytest.mark.usefixtures("few_simulated_studies")
@pytest.mark.parametrize("main", [{"effect": "ema_decay"}, {"best": "any"}, {"shape": "mtd"}, None])
def test_a_page_has_one_interval_for_a_difference(
    crossed: pd.DataFrame, main: dict[str, str] | None
) -> None:
    asked = [{"effect": "ema_decay"}, {"interaction": ["ema_decay", "learning_rate"]}]
    asked = [main, *(other for other in asked if other != main)]
    values = {"metric": "sts_average", "beyond_run": "leave-out", "alpha": 0.05, "margin": 0.5}
    values |= {"looks": [4], "questions": asked}
    study = build_study(crossed)
    if main is not None:
        study = replace(study, plans=(Plan(0, values, ""),))
    found = find_intervals(write_page(study))
    assert found
    twice = {size: intervals for size, intervals in found.items() if len(intervals) > 1}
    assert not twice


# the differences of the page of claims are each of another study, and stand in one table
PAGES = sorted(page for page in GALLERY.glob("*/index.html") if page.parent.name != "paper")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_page_of_the_gallery_has_one_interval_for_a_difference(page: Path) -> None:
    text = re.sub(r"<svg.*?</svg>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    cells = re.sub(r"</td>\s*<td[^>]*>", " | ", text)
    found = find_intervals(re.sub(r"<[^>]+>", "", cells))
    assert found
    assert not {size: intervals for size, intervals in found.items() if len(intervals) > 1}


def test_two_intervals_are_noticed() -> None:
    text = "less: 3.98 points (95 % CI 0.65 to 7.32). more: -3.98 | 95 % CI -7.42 to -0.55"
    assert find_intervals(text) == {3.98: {(0.65, 7.32), (0.55, 7.42)}}
    claimed = "minus SimCSE: +0.39 points (95 % CI −1.68 to 2.46). Here +0.39 (−1.61 to 2.38)"
    assert find_intervals(claimed) == {0.39: {(-1.68, 2.46), (-1.61, 2.38)}}
