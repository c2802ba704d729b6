"""The section on whether the answer of the first study holds in the others."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis import figures
from analysis.data.frames import StudyFrames
from analysis.data.runs import format_mtd
from analysis.inference.intervals import Estimate
from analysis.report.cells import PERCENT, clean, count, make_table
from analysis.report.drawing import Draw, Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic
from analysis.statistics.agreement import (
    UNITS,
    Agreement,
    compute_agreements,
    compute_candidates,
    compute_unit_curve,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGREEMENT, CANDIDATES = "transfer", "transfer_candidates"
"""Names of the tables: how studies agree, and which configurations are worth running."""
_CAPTION = (
    f"Agreement with the first study. Order: Kendall's tau of the mean scores at common levels, "
    "interpolated where the other study has other levels; its CI counts every pair of levels that "
    "does not differ significantly in both studies as undecided. Ratio: the other study's best "
    "level divided by the first's; its CI is that of the levels that may be the best. All CIs are "
    f"simultaneous {PERCENT} ones for both studies; half-lives count as known."
)


def tabulate_agreements(studies: Sequence[StudyFrames]) -> tuple[pd.DataFrame, list[Agreement]]:
    """A row for each other study and unit, and the agreements of these rows."""
    first, *others = studies
    found = [each for other in others for each in compute_agreements(first, other)]
    rows = [
        {
            "study": each.other,
            "unit": each.unit,
            "levels": each.levels,
            "tau": each.order.mean,
            "tau_low": each.order.low,
            "tau_high": each.order.high,
            "pairs": each.pairs,
            "alike": each.alike,
            "opposite": each.opposite,
            "first_best": each.best[0].mean,
            "first_low": each.best[0].low,
            "first_high": each.best[0].high,
            "other_best": each.best[1].mean,
            "other_low": each.best[1].low,
            "other_high": each.best[1].high,
            "ratio": each.ratio.mean,
            "ratio_low": each.ratio.low,
            "ratio_high": each.ratio.high,
        }
        for each in found
    ]
    return pd.DataFrame(rows), found


def tabulate_candidates(studies: Sequence[StudyFrames]) -> pd.DataFrame:
    """`compute_candidates` for each other study, after its name."""
    first, *others = studies
    parts = [compute_candidates(first, other).assign(study=other.name) for other in others]
    table = pd.concat(parts, ignore_index=True)
    return table[["study", *table.columns.drop("study")]]


@dataclass(frozen=True)
class Transfer:
    """table: `tabulate_agreements`, of these agreements; candidates: `tabulate_candidates`.

    Attributes:
        studies: two or more; the first is the small one.
    """

    studies: Sequence[StudyFrames]
    table: pd.DataFrame
    agreements: Sequence[Agreement]
    candidates: pd.DataFrame


def compute(studies: Sequence[StudyFrames]) -> Transfer:
    """How the first study's answer agrees with the others'."""
    table, agreements = tabulate_agreements(studies)
    # candidates are those of a first study that can be compared
    candidates = tabulate_candidates(studies) if agreements else pd.DataFrame()
    return Transfer(studies, table, agreements, candidates)


def describe(info: Transfer) -> tuple[str, ...]:
    """A sentence for each other study and unit."""
    if not info.agreements:
        return ("There are no two studies with two levels of MTD and two seeds each.",)
    return (*map(describe_agreement, info.agreements), *_unmeasured(info.studies, info.agreements))


def show(info: Transfer) -> tuple[Table, ...]:
    """How the studies agree, and which configurations are worth running."""
    if not info.agreements:
        return ()
    return (
        _show_agreements(info.table),
        _show_candidates(info.candidates, info.studies[0].name),
    )


def make_transfer_topic(*, requested: bool) -> Topic[Any, Transfer]:
    """The topic of a page over several studies; without a section unless it was requested."""
    return Topic(
        name="transfer",
        title="Does the first study predict the others?",
        compute=lambda context: compute(context.studies) if requested else None,
        csv={AGREEMENT: lambda info: info.table, CANDIDATES: lambda info: info.candidates},
        figures={"transfer": draw},
        text=describe,
        tables=show,
    )


def describe_agreement(found: Agreement) -> str:
    """Order and best level in one unit, as text."""
    first, other = clean(found.first), clean(found.other)
    start = f"{other}, MTD in {found.unit}: "
    return f"{start}{_describe_order(found)} {_describe_best(found, first, other)}"


def _describe_order(found: Agreement) -> str:
    if not math.isfinite(found.order.mean):
        return f"{count(found.levels, 'common level')}, too few for an order."
    tau, decided = found.order, found.alike + found.opposite
    start = (
        f"the order of {found.levels} common levels agrees with Kendall's tau {tau.mean:.2f} "
        f"({PERCENT} CI {tau.low:.2f} to {tau.high:.2f})"
    )
    if not decided:
        return f"{start}: none of {found.pairs} pairs differs significantly in both studies."
    return (
        f"{start}: {decided} of {found.pairs} pairs differ significantly in both studies, "
        f"{found.alike} of them in the same direction."
    )


def _describe_best(found: Agreement, first: str, other: str) -> str:
    own, others = (_range(each) for each in found.best)
    text = f"The best level is {own} in {first} and {others} in {other}"
    if not math.isfinite(found.ratio.low):
        return f"{text}; the half-life of a level that may be the best is not known."
    same = "may be the same" if found.same_best else "are not the same"
    interval = f"{found.ratio.low:.2g} to {found.ratio.high:.2g}"
    return f"{text}: a ratio of {found.ratio.mean:.2g} ({interval}), so they {same}."


def _range(best: Estimate) -> str:
    return f"{_number(best.mean)} ({_number(best.low)} to {_number(best.high)} may be the best)"


def _number(place: float) -> str:
    return format_mtd(place) if place >= 10 else f"{place:.3g}"


def _unmeasured(studies: Sequence[StudyFrames], found: Sequence[Agreement]) -> tuple[str, ...]:
    """That half-lives are missing, and how they are measured."""
    if any(each.unit != UNITS[0] for each in found):
        return ()
    names = ", ".join(clean(study.name) for study in studies if study.probes.empty)
    of = f" of {names}" if names else ""
    return (f"Half-lives of keys{of} were not measured; the setting probe_every measures them.",)


def _show_agreements(table: pd.DataFrame) -> Table:
    names = {
        "tau_low": "tau, low",
        "tau_high": "tau, high",
        "first_best": "best, first",
        "other_best": "best, other",
        "ratio_low": "ratio, low",
        "ratio_high": "ratio, high",
    }
    hidden = ["first_low", "first_high", "other_low", "other_high"]
    rounded = table.drop(columns=hidden).round(3)
    return make_table(rounded.rename(columns=names), caption=_CAPTION, csv=AGREEMENT)


def _show_candidates(table: pd.DataFrame, first: str) -> Table:
    names = {"other_n": "n there", "other_mean": "mean there"}
    caption = (
        f"Configurations worth running: those of {clean(first)} at levels of MTD that may be its "
        f"best (simultaneous {PERCENT} confidence set), the highest mean first, and what the other "
        "study shows of that MTD in steps."
    )
    return make_table(table.rename(columns=names), caption=caption, csv=CANDIDATES)


def draw(info: Transfer) -> Drawing | None:
    """The curve of each study, a panel for each unit of MTD."""
    agreements = info.agreements
    if not agreements:
        return None
    units = [unit for unit in UNITS if any(each.unit == unit for each in agreements)]
    compared = {agreements[0].first, *(each.other for each in agreements)}
    chosen = [study for study in info.studies if study.name in compared]
    panels = [
        (
            f"MTD in {unit}",
            _panel(
                {clean(study.name): compute_unit_curve(study, unit) for study in chosen},
                unit,
            ),
        )
        for unit in units
    ]
    return Drawing(
        "Deviation from each study's mean, by study",
        panels,
        height=4.0,
        columns=len(panels),
        caption=(
            "Score at each level less the mean over the study's levels, seeds as blocks; the band "
            f"is the {PERCENT} interval of a level."
        ),
        alt=" ".join(map(describe_agreement, agreements)),
    )


def _panel(curves: Mapping[str, pd.DataFrame], unit: str) -> Draw:
    def panel(ax: "Axes") -> None:
        drawn = {name: curve for name, curve in curves.items() if len(curve)}
        figures.draw_conditions(
            drawn, ax, name="deviation from the\nmean over levels", distance=f"MTD ({unit})"
        )

    return panel
