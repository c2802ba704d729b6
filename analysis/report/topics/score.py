"""Topic: the score against the maximum traceable distance (MoCoSE, figure 2)."""

import math

import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.published import SOURCE, load_curve
from analysis.data.runs import MTD_DECIMALS, format_mtd
from analysis.inference.pairing import merge_levels
from analysis.measures.trace import PARTS
from analysis.report.cells import LEVEL, PERCENT, count, describe_curve, describe_items, make_table
from analysis.report.topics.base import Axes, Draw, Drawing, StudyContext, Table, Topic
from analysis.statistics.baseline import name_baseline
from analysis.statistics.configurations import DIFFERENCE
from analysis.statistics.curves import CONFIGURATION

_MOST_MARKED = 6
_TITLE = "Score against maximum traceable distance"


def tabulate(context: StudyContext) -> pd.DataFrame:
    """The curve and the paired curve in one table."""
    curve, paired = context.curve, context.paired.rename(columns=lambda name: f"paired_{name}")
    levels = context.traced["mtd"].astype("float64").round(MTD_DECIMALS)
    merged = curve.assign(
        median=curve["mtd"].map(context.traced["score"].groupby(levels).median()),
        collapsed_share=curve["mtd"].map(context.collapsed["share"]),
        paired_mtd=merge_levels(curve["mtd"]),
    )
    leads = [
        (lead.mtd, -lead.size.mean, -lead.size.high, -lead.size.low)
        for lead in context.verdict.leads
    ]
    less = pd.DataFrame(leads, columns=["paired_mtd", *DIFFERENCE], dtype="float64")
    table = merged.merge(paired, on="paired_mtd", how="left").assign(level=LEVEL)
    table = table.merge(less, on="paired_mtd", how="left")
    if (table["paired_mtd"] == table["mtd"]).all():
        table = table.drop(columns="paired_mtd")
    first = ["mtd", "n", "mean", "low", "high", "seeds", "level"]
    return table[[*first, *table.columns.drop(first)]]


def show(context: StudyContext) -> tuple[Table, ...]:
    """The table, with the components of MTD that vary where each level is one configuration."""
    hidden = ["level", "seeds", "items", "paired_seeds", "paired_mtd", "paired_low", "paired_high"]
    shown, cells = tabulate(context).drop(columns=hidden, errors="ignore"), context.cells
    if shown["collapsed_share"].isna().all():
        shown = shown.drop(columns="collapsed_share")
    if cells["mtd"].tolist() == context.curve["mtd"].tolist():
        for name, symbol in PARTS.items():
            if cells[name].nunique() > 1:
                shown.insert(1, symbol, cells[name].to_numpy())
    caption = (
        f"Mean score at each MTD with its {PERCENT} interval over {_covered(context)}, the median "
        "of the trials and the share that collapsed; then the deviation from the mean over "
        f"levels, seeds as blocks, with a {PERCENT} interval that holds for all levels at once; "
        "last, the difference to the best level, with an interval that holds for all pairs of "
        "levels."
    )
    return (make_table(shown, caption=caption, csv="mtd_curve", many="levels"),)


def _covered(context: StudyContext) -> str:
    """What the intervals of the means cover."""
    return f"seeds{describe_items(int(context.curve['items'].min()))}"


def describe(context: StudyContext) -> tuple[str, ...]:
    """Where the mean is highest and lowest, and what is known of collapses."""
    curve = context.curve
    if not len(curve):
        return ()
    return describe_curve(curve, "The mean score is"), _describe_seeds(context), _bound(context)


def _bound(context: StudyContext) -> str:
    """What levels without a collapse do not show."""
    collapsed = context.collapsed.reindex(context.curve["mtd"])
    known = collapsed[collapsed["share"].notna()]
    seeds = int(min(context.curve["seeds"].max(), known["assessed"].max())) if len(known) else 0
    if known["collapsed"].any() or seeds < 2:
        return ""
    return (
        f"No collapse was detected. That does not bound the mean: with {seeds} trials of a level, "
        f"up to {100 * (1 - (1 - LEVEL) ** (1 / seeds)):.0f} % of further ones may collapse "
        f"({PERCENT} confidence), and each would lower it."
    )


def describe_missing(context: StudyContext) -> str:
    if len(context.curve):
        return ""
    why = "No completed trial has a score"
    if context.untraced_by_method:
        why = f"{', '.join(context.untraced_by_method)} has no MTD"
    return f"{why}, so there is no curve over MTD."


def draw(context: StudyContext) -> Drawing | None:
    curve, verdict = context.curve, context.verdict
    if not len(curve):
        return None
    panels = [("every trial, and the mean", _study(context))]
    parts = ["A point per trial, a thin line per seed, and the mean over seeds."]
    if marked := _marks(context):
        parts.append("Large points are configurations.")
    if context.against_baseline is not None:
        parts.append(f"The horizontal band is the baseline: its mean and {PERCENT} interval.")
    if verdict.seeds > 1 and verdict.levels > 1:
        panels.append(("deviation from the mean over levels", _paired(context)))
        smooth = f"the line is a smooth curve with a {PERCENT} band for the whole of it, "
        parts.append(
            "The other panel, on which the verdict rests, shows the deviation of each level from "
            "the mean over levels, seeds as blocks: bars are intervals for one level, "
            f"{smooth if len(context.smooth) else ''}and rings mark the levels that are "
            "statistically indistinguishable from the best."
        )
    return Drawing(
        _TITLE,
        panels,
        height=4.4 if marked else 3.9,
        columns=len(panels),
        caption=" ".join([*parts, f"The band is the {PERCENT} interval over {_covered(context)}."]),
        alt=f"{describe_curve(curve, 'The mean score is')} {verdict.sentence}",
    )


def _marks(context: StudyContext) -> bool:
    """Whether configurations have a colour and a marker: two components vary, in few values."""
    values = [context.cells[name].nunique() for name in CONFIGURATION[1:]]
    varied = [amount for amount in values if amount > 1]
    return len(varied) == 2 and max(varied) <= _MOST_MARKED


def _study(context: StudyContext) -> Draw:
    cells, runs = context.cells, context.traced
    untrained = float(runs["score_before"].astype("float64").mean())

    def panel(ax: Axes) -> None:
        figures.draw_mtd_curve(
            context.curve, ax, runs=runs, value="score", name=context.score_label
        )
        entries = None
        if _marks(context):
            labels = describe_means(cells, runs, by=CONFIGURATION)
            entries = figures.draw_configurations(cells, ax, labels=labels)
        else:
            figures.draw_component_axis(cells, ax)
        figures.draw_untraced(context.untraced_by_method, ax)
        if (beside := context.against_baseline) is not None:
            figures.draw_baseline(name_baseline(context.study), beside.mean.estimate, ax)
        if math.isfinite(untrained):
            figures.draw_untrained(untrained, ax)
        figures.add_legend(ax, more=entries)

    return panel


def _paired(context: StudyContext) -> Draw:
    """The paired curve, whose levels state their best trial."""
    runs = context.traced.assign(level=merge_levels(context.traced["mtd"]))
    labels = describe_means(context.paired.assign(level=context.paired["mtd"]), runs, by=["level"])
    labels["text"] = "Deviation from the mean over levels. " + labels["text"]

    return lambda ax: figures.draw_paired_curve(
        context.paired,
        ax,
        smooth=context.smooth,
        optimal=context.verdict.optimal_range,
        labels=labels,
    )


def compare_seeds(context: StudyContext) -> pd.DataFrame:
    """The best level less the first and less the last, within each seed.

    Returns:
        end (its MTD), seed, difference; no rows where fewer than two levels or seeds are compared.
    """
    table, verdict = context.levels.table, context.verdict
    best, columns = verdict.peak_mtd, ["end", "seed", "difference"]
    ends = {verdict.first, verdict.last} & set(table) - {best}
    if len(table) < 2 or not ends or best not in table:
        return pd.DataFrame(columns=columns)
    less = table[sorted(ends)].rsub(table[best], axis="index").rename_axis("seed")
    rows = less.melt(var_name="end", value_name="difference", ignore_index=False).dropna()
    return rows.reset_index()[columns]


def _describe_seeds(context: StudyContext) -> str:
    """In how many seeds the best level is above the ends of the range."""
    parts = [
        f"{int((rows['difference'] > 0).sum())} of {count(len(rows), 'seed')} above MTD "
        f"{format_mtd(float(str(end)))}"
        for end, rows in compare_seeds(context).groupby("end")
    ]
    best = format_mtd(context.verdict.peak_mtd)
    return f"MTD {best} is in {' and in '.join(parts)}." if parts else ""


def draw_seeds(context: StudyContext) -> Drawing | None:
    """The difference of the best level to the ends of the range, a point per seed."""
    differences = compare_seeds(context)
    if not len(differences):
        return None
    best = format_mtd(context.verdict.peak_mtd)
    return Drawing(
        f"MTD {best} less the ends of the range, seed by seed",
        [("", lambda ax: figures.draw_seed_differences(differences, ax))],
        height=0.9 + 0.45 * differences["end"].nunique(),
        rigid=True,
        caption=f"A point per seed: its score at MTD {best} less that at the end of the range.",
        alt=_describe_seeds(context),
    )


def draw_published(context: StudyContext) -> Drawing | None:
    """The study's curve beside the paper's, each as deviations from its own mean.

    None for a program of the user, whose data are others than the published ones.
    """
    if len(context.paired) < 2 or context.study.program:
        return None
    published = load_curve("figure2_mtd")
    return Drawing(
        "Shape of the curve beside that of the paper",
        [("", lambda ax: figures.draw_deviations(context.paired, published, ax))],
        height=3.2,
        caption=(
            f"Each curve less its mean over its own levels, which differ; the paper's is figure 2 "
            f"({SOURCE}). Bands are {PERCENT} intervals."
        ),
        alt=describe_curve(published, "The published mean is"),
    )


TOPIC = Topic[StudyContext, StudyContext](
    name="score",
    title=_TITLE,
    compute=lambda context: context,
    csv={"mtd_curve": tabulate},
    figures={"mtd_curve": draw, "seed_differences": draw_seeds, "mtd_published": draw_published},
    text=describe,
    missing=describe_missing,
    tables=show,
    keep_empty=True,
)
