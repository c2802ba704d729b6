"""The section on whether the answer of the first study holds in the others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis import figures
from analysis.data.frames import StudyFrames
from analysis.data.runs import format_mtd
from analysis.inference.intervals import Estimate
from analysis.report.cells import PERCENT, clean, count, make_table
from analysis.report.topics.base import Draw, Drawing, Table, Topic
from analysis.statistics.agreement import (
    UNITS,
    Agreement,
    compute_agreements,
    compute_candidates,
    compute_unit_curve,
)

AGREEMENT, CANDIDATES = "transfer", "transfer_candidates"
"""Names of the tables: how studies agree, and which configurations are worth running."""
_LABELS = {
    "tau_low": "tau, low",
    "tau_high": "tau, high",
    "first_best": "best, first",
    "other_best": "best, other",
    "ratio_low": "ratio, low",
    "ratio_high": "ratio, high",
    "other_n": "n there",
    "other_mean": "mean there",
}
_CAPTION = (
    f"Agreement with the first study. Order: Kendall's tau of the mean scores at common levels, "
    "interpolated where the other study has other levels; its CI counts every pair of levels that "
    "does not differ significantly in both studies as undecided. Ratio: the other study's best "
    "level divided by the first's; its CI is that of the levels that may be the best. All CIs are "
    f"simultaneous {PERCENT} ones for both studies; half-lives count as known."
)


@dataclass(frozen=True)
class Transfer:
    """How the first study's answer agrees with the others', and what is worth running.

    Attributes:
        studies: two or more; the first is the small one.
        candidates: `compute_candidates` for each other study, after its name.
    """

    studies: Sequence[StudyFrames]
    agreements: Sequence[Agreement]
    candidates: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """A row for each agreement: a column per count, and of an estimate also for its ends."""
        rows = []
        for each in self.agreements:
            row: dict[str, object] = {"study": each.other, "unit": each.unit, "levels": each.levels}
            row |= _spread("tau", each.order)
            row |= {name: getattr(each, name) for name in ("pairs", "alike", "opposite")}
            for name, best in zip(("first", "other"), each.best, strict=True):
                row |= _spread(name, best)
            rows.append(row | _spread("ratio", each.ratio))
        return pd.DataFrame(rows).rename(columns={"first": "first_best", "other": "other_best"})


def _spread(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def compute(studies: Sequence[StudyFrames]) -> Transfer:
    first, *others = studies
    agreements = [each for other in others for each in compute_agreements(first, other)]
    candidates = pd.DataFrame()
    # candidates are those of a first study that can be compared
    if agreements:
        found = {other.name: compute_candidates(first, other) for other in others}
        candidates = pd.concat(found, names=["study", None]).reset_index("study")
    return Transfer(studies, agreements, candidates.reset_index(drop=True))


def describe(info: Transfer) -> tuple[str, ...]:
    """A sentence for each other study and unit; where half-lives are missing, how to have them."""
    if not info.agreements:
        return ("There are no two studies with two levels of MTD and two seeds each.",)
    texts = tuple(map(describe_agreement, info.agreements))
    if any(each.unit != UNITS[0] for each in info.agreements):
        return texts
    names = ", ".join(clean(study.name) for study in info.studies if study.probes.empty)
    of = f" of {names}" if names else ""
    missing = f"Half-lives of keys{of} were not measured; the setting probe_every measures them."
    return (*texts, missing)


def show(info: Transfer) -> tuple[Table, ...]:
    if not info.agreements:
        return ()
    hidden = ["first_low", "first_high", "other_low", "other_high"]
    shown = info.table.drop(columns=hidden).round(3).rename(columns=_LABELS)
    caption = (
        f"Configurations worth running: those of {clean(info.studies[0].name)} at levels of MTD "
        f"that may be its best (simultaneous {PERCENT} confidence set), the highest mean first, "
        "and what the other study shows of that MTD in steps."
    )
    candidates = info.candidates.rename(columns=_LABELS)
    return (
        make_table(shown, caption=_CAPTION, csv=AGREEMENT),
        make_table(candidates, caption=caption, csv=CANDIDATES),
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
    pairs = f"none of {found.pairs} pairs differs significantly in both studies"
    if decided:
        pairs = (
            f"{decided} of {found.pairs} pairs differ significantly in both studies, {found.alike} "
            "of them in the same direction"
        )
    return (
        f"the order of {found.levels} common levels agrees with Kendall's tau {tau.mean:.2f} "
        f"({PERCENT} CI {tau.low:.2f} to {tau.high:.2f}): {pairs}."
    )


def _describe_best(found: Agreement, first: str, other: str) -> str:
    own, others = (
        f"{_number(each.mean)} ({_number(each.low)} to {_number(each.high)} may be the best)"
        for each in found.best
    )
    text = f"The best level is {own} in {first} and {others} in {other}"
    if not math.isfinite(found.ratio.low):
        return f"{text}; the half-life of a level that may be the best is not known."
    same = "may be the same" if found.same_best else "are not the same"
    interval = f"{found.ratio.low:.2g} to {found.ratio.high:.2g}"
    return f"{text}: a ratio of {found.ratio.mean:.2g} ({interval}), so they {same}."


def _number(place: float) -> str:
    return format_mtd(place) if place >= 10 else f"{place:.3g}"


def draw(info: Transfer) -> Drawing | None:
    if not info.agreements:
        return None
    units = [unit for unit in UNITS if unit in {each.unit for each in info.agreements}]
    compared = {info.agreements[0].first, *(each.other for each in info.agreements)}
    chosen = [study for study in info.studies if study.name in compared]
    return Drawing(
        "Deviation from each study's mean, by study",
        [(f"MTD in {unit}", _panel(chosen, unit)) for unit in units],
        height=4.0,
        columns=len(units),
        caption=(
            "Score at each level less the mean over the study's levels, seeds as blocks; the band "
            f"is the {PERCENT} interval of a level."
        ),
        alt=" ".join(map(describe_agreement, info.agreements)),
    )


def _panel(studies: Sequence[StudyFrames], unit: str) -> Draw:
    curves = {clean(study.name): compute_unit_curve(study, unit) for study in studies}
    drawn = {name: curve for name, curve in curves.items() if len(curve)}
    name, distance = "deviation from the\nmean over levels", f"MTD ({unit})"
    return lambda ax: figures.draw_conditions(drawn, ax, name=name, distance=distance)


TOPIC = Topic[Any, Transfer](
    name="transfer",
    title="Does the first study predict the others?",
    compute=lambda context: compute(context.studies) if context.transfer else None,
    csv={AGREEMENT: lambda info: info.table, CANDIDATES: lambda info: info.candidates},
    figures={"transfer": draw},
    text=describe,
    tables=show,
)
"""Of a page over several studies; without a section unless it was requested."""
