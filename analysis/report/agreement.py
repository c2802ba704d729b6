"""The section on whether the answer of the first study holds in the others."""

import math
from collections.abc import Sequence

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.questions.wording import PERCENT, clean
from mtdlab.analysis.report.cells import format_count, make_table
from mtdlab.analysis.report.topics.base import Contents, Draw, Drawing
from mtdlab.analysis.statistics.multi_study import (
    HALF_LIVES,
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


def tabulate(agreements: Sequence[Agreement]) -> pd.DataFrame:
    """A row for each agreement: a column per count, and of an estimate also for its ends."""
    rows = [
        {
            "study": agreement.other,
            "unit": agreement.unit,
            "levels": agreement.levels,
            **_spread("tau", agreement.order),
            "pairs": agreement.pairs,
            "alike": agreement.alike,
            "opposite": agreement.opposite,
            **_spread("first_best", agreement.best[0]),
            **_spread("other_best", agreement.best[1]),
            **_spread("ratio", agreement.ratio),
            "same_best": agreement.same_best if math.isfinite(agreement.ratio.low) else None,
        }
        for agreement in agreements
    ]
    return pd.DataFrame(rows)


def _spread(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def compute(studies: Sequence[StudyFrames]) -> tuple[Agreement, ...]:
    """How the answer of the first study agrees with that of each other one."""
    first, *others = studies
    return tuple(agreement for other in others for agreement in compute_agreements(first, other))


def build(
    studies: Sequence[StudyFrames], agreements: Sequence[Agreement] | None
) -> Contents | None:
    """The section; None where no agreements were requested."""
    if agreements is None:
        return None
    if not agreements:
        nothing = "There are no two studies with two levels of MTD and two seeds each."
        return Contents(csv={AGREEMENT: pd.DataFrame()}, text=[nothing])
    first, *others = studies
    by_study = {other.name: compute_candidates(first, other) for other in others}
    candidates = pd.concat(by_study, names=["study", None]).reset_index("study")
    table = tabulate(agreements)
    ends = [f"{name}_best_{end}" for name in ("first", "other") for end in ("low", "high")]
    shown = table.drop(columns=[*ends, "same_best"]).round(3).rename(columns=_LABELS)
    caption = (
        f"Configurations worth running: those of {clean(first.name)} at levels of MTD "
        f"that may be its best (simultaneous {PERCENT} confidence set), the highest mean first, "
        "and what the other study shows of that MTD in steps."
    )
    text = [describe_agreement(agreement) for agreement in agreements if agreement.is_decided] or [
        "No two studies are shown to differ in their best level, or to agree or differ in the "
        "order of two levels."
    ]
    drawing = _draw(studies, agreements, " ".join(text))
    if all(agreement.unit != HALF_LIVES for agreement in agreements):
        names = ", ".join(clean(study.name) for study in studies if study.probes.empty)
        text.append(
            f"Half-lives of keys{names and ' of '}{names} were not measured; the setting "
            "probe_every measures them."
        )
    return Contents(
        csv={AGREEMENT: table, CANDIDATES: candidates},
        figures={"transfer": drawing},
        text=text,
        tables=(
            make_table(shown, caption=_CAPTION, csv=AGREEMENT),
            make_table(candidates.rename(columns=_LABELS), caption=caption, csv=CANDIDATES),
        ),
    )


def describe_agreement(agreement: Agreement) -> str:
    """How two studies agree in one unit, as text: the order of levels and the best level."""
    first, other = clean(agreement.first), clean(agreement.other)
    start = f"{other}, MTD in {agreement.unit}: "
    return f"{start}{_describe_order(agreement)} {_describe_best(agreement, first, other)}"


def _describe_order(agreement: Agreement) -> str:
    if not math.isfinite(agreement.order.mean):
        return f"{format_count(agreement.levels, 'common level')}, too few for an order."
    tau, decided = agreement.order, agreement.alike + agreement.opposite
    if (tau.low, tau.high) == (-1, 1):
        return f"whether the order of {agreement.levels} common levels agrees cannot be judged."
    pairs = f"none of {agreement.pairs} pairs differs significantly in both studies"
    if decided:
        pairs = (
            f"{decided} of {agreement.pairs} pairs differ significantly in both studies, "
            f"{agreement.alike} of them in the same direction"
        )
    return (
        f"the order of {agreement.levels} common levels agrees with Kendall's tau {tau.mean:.2f} "
        f"({PERCENT} CI {tau.low:.2f} to {tau.high:.2f}): {pairs}."
    )


def _describe_best(agreement: Agreement, first: str, other: str) -> str:
    own, others = map(_place, agreement.best)
    text = f"The best level is {own} in {first} and {others} in {other}"
    if not math.isfinite(agreement.ratio.low):
        return f"{text}; the half-life of a level that may be the best is not known."
    same = "may be the same" if agreement.same_best else "are not the same"
    interval = f"{agreement.ratio.low:.2g} to {agreement.ratio.high:.2g}"
    return f"{text}: a ratio of {agreement.ratio.mean:.2g} ({interval}), so they {same}."


def _place(level: Estimate) -> str:
    if not math.isfinite(level.mean):
        return "not known"
    if not math.isfinite(level.low):
        return _number(level.mean)
    return f"{_number(level.mean)} ({_number(level.low)} to {_number(level.high)} may be the best)"


def _number(place: float) -> str:
    return format_mtd(place) if place >= 10 else f"{place:.3g}"


def _draw(studies: Sequence[StudyFrames], agreements: Sequence[Agreement], alt: str) -> Drawing:
    units = dict.fromkeys(agreement.unit for agreement in agreements)
    return Drawing(
        "Deviation from each study's mean, by study",
        [(f"MTD in {unit}", _panel(studies, unit)) for unit in units],
        caption=(
            "Score at each level minus the mean over the study's levels, seeds as blocks; the band "
            f"is the {PERCENT} interval of a level."
        ),
        alt=alt,
    )


def _panel(studies: Sequence[StudyFrames], unit: str) -> Draw:
    curves = {clean(study.name): compute_unit_curve(study, unit) for study in studies}
    drawn = {name: curve for name, curve in curves.items() if len(curve)}
    name, distance = "deviation from the\nmean over levels", f"MTD ({unit})"
    return lambda ax: figures.draw_conditions(drawn, ax, name=name, distance=distance)
