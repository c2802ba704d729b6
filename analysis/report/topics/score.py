"""Topics: the score against the maximum traceable distance (MoCoSE, figure 2).

Beside the curve: that of the paper, its rank correlations, and the scores by task.
"""

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.beyond_run import RULE
from mtdlab.analysis.data.frames import DIFFERENCE
from mtdlab.analysis.data.points import MOST_MARKED, describe_means
from mtdlab.analysis.data.published import SOURCE, load_curve
from mtdlab.analysis.data.questions import ANY
from mtdlab.analysis.data.runs import format_mtd, levels_of, varied_parts
from mtdlab.analysis.data.tasks import STS
from mtdlab.analysis.inference.best import varies_method, with_methods
from mtdlab.analysis.inference.pairing import level_scores, merge_levels
from mtdlab.analysis.measures.trace import MTD_COLUMNS, PARTS
from mtdlab.analysis.questions import shape_wording
from mtdlab.analysis.questions.conditions import list_varied_conditions
from mtdlab.analysis.questions.interaction import InteractionQuestion
from mtdlab.analysis.questions.shape import ShapeQuestion
from mtdlab.analysis.questions.wording import PERCENT, join_words, over_all_looks
from mtdlab.analysis.report.cells import (
    LEVEL,
    MISSING,
    describe_covered,
    describe_curve,
    format_count,
    make_table,
)
from mtdlab.analysis.report.topics.base import (
    HEIGHT,
    Axes,
    Contents,
    Draw,
    Drawing,
    StudyContext,
    Table,
    Topic,
)
from mtdlab.analysis.report.topics.conditions import ROBUSTNESS
from mtdlab.analysis.report.topics.experiment import describe_conditions, is_curve
from mtdlab.analysis.report.topics.references import BEFORE, choose_lines
from mtdlab.analysis.statistics.baseline import name_baseline
from mtdlab.analysis.statistics.curves import compute_correlations, compute_tasks

_MOST_MARKED, _LINE = 6, 0.17
_TITLE = "Score against maximum traceable distance"


def build(context: StudyContext) -> Contents | None:
    """The curve; None where there is none to miss: one level, or a table without an MTD."""
    is_other = bool(context.study.table) and context.has_no_mtd
    if context.is_one_point or is_other:
        return None
    table = context.write.frame(tabulate(context), "median")
    if missing := describe_missing(context):
        return Contents(csv={"mtd_curve": table}, missing=missing)
    return Contents(
        csv={"mtd_curve": table},
        figures={"mtd_curve": draw(context)},
        text=describe(context),
        tables=[_show(context, table)],
    )


def tabulate(context: StudyContext) -> pd.DataFrame:
    """The curve and the paired curve in one table."""
    curve, paired = context.curve, context.paired.rename(columns=lambda name: f"paired_{name}")
    runs = context.balanced
    merged = curve.assign(
        median=curve["mtd"].map(runs["score"].groupby(levels_of(runs)).median()),
        collapsed_share=curve["mtd"].map(context.collapsed["share"]),
        paired_mtd=merge_levels(curve["mtd"]),
        beyond_run=curve["mtd"].isin(context.verdict.left_out),
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


def _show(context: StudyContext, table: pd.DataFrame) -> Table:
    """The table, with the components of MTD that vary where each level is one configuration."""
    cells = context.cells
    collapsed = ["median", "collapsed_share"] if (table["collapsed_share"] > 0).any() else []
    shown = table[["mtd", "n", "seeds", "mean", "low", "high", *collapsed, *DIFFERENCE]]
    shown = shown.dropna(axis="columns", how="all")
    if cells["mtd"].tolist() == context.curve["mtd"].tolist():
        for name, symbol in PARTS.items():
            if cells[name].nunique() > 1:
                shown.insert(1, symbol, cells[name].to_numpy())
    run, beyond = table["beyond_run"].map({True: "beyond", False: "within"}), ""
    if context.verdict.left_out:
        shown.insert(1, "run", run)
        beyond = f" Beyond the run, and not compared: {RULE}."
    covered = describe_covered(context.curve)
    caption = f"Mean score at each MTD with its {PERCENT} interval over seeds{covered}"
    if context.levels.unbalanced:
        caption += ", of runs whose other settings are the same at all levels"
    if DIFFERENCE[0] in shown:
        caption += "; the difference to the best level, with an interval for all pairs of levels"
    interval = f"difference, {100 * context.verdict.confidence:.3g} %"
    labels = {DIFFERENCE[1]: f"{interval} CI{over_all_looks(context.verdict.over_looks)}"}
    caption += f".{beyond}"
    if context.verdict.is_within:
        caption += " That levels are within the margin rests on equivalence tests, not on these."
    # the table has them as they were read
    decimals = context.write.unsigned
    return make_table(shown, caption=caption, csv="mtd_curve", labels=labels, write=decimals)


def describe(context: StudyContext) -> tuple[str, ...]:
    """Sentences on in how many seeds the best level is better, and on collapses."""
    is_said = context.question.is_over_mtd or context.compares_methods
    verdict = "" if is_said or context.verdict.levels < 2 else context.verdict.sentence
    if verdict and list_varied_conditions(context.levels.runs, context.study.nuisance):
        each = f"each has a verdict under “{ROBUSTNESS}”"
        if isinstance(context.question, InteractionQuestion) and context.answer.is_decided:
            # what holds on average is then true of none
            return (f"Conditions are not compared together, since they interact; {each}.",)
        verdict += f" It is of means over these; {each}."
    return verdict, _describe_seeds(context), _bound(context)


def _bound(context: StudyContext) -> str:
    """A sentence on the upper bound of collapses at levels without one."""
    collapsed = context.collapsed.reindex(context.curve["mtd"])
    known = collapsed[collapsed["share"].notna()]
    seeds = int(min(context.curve["seeds"].max(), known["assessed"].max())) if len(known) else 0
    if known["collapsed"].any() or seeds < 2:
        return ""
    return (
        f"No trial collapsed. With {seeds} trials a level, as many as "
        f"{100 * (1 - (1 - LEVEL) ** (1 / seeds)):.0f} % of further trials could still collapse "
        f"({PERCENT} confidence)."
    )


def describe_missing(context: StudyContext) -> str:
    """A sentence on why there is no curve; empty where there is one."""
    if len(context.curve):
        return ""
    why = "No completed trial has a score"
    if len(context.untraced):
        names = ", ".join(filter(None, context.untraced_by_method))
        why = f"{names} has no MTD" if names else "No trial has an MTD"
    return f"{why}, so there is no curve over MTD."


def draw(context: StudyContext) -> Drawing | None:
    curve, verdict = context.curve, context.verdict
    if not len(curve):
        return None
    panels = [("every trial, and the mean", _study(context))]
    band = f"with its {PERCENT} interval over seeds{describe_covered(context.curve)}"
    parts = [f"A point per trial, a thin line per seed, and the mean {band}."]
    # the lines of the legend beside those of every study, in one column
    more, untrained = 0, choose_lines(context)
    if _marks(context):
        more = sum(_count_varied(context)) + len(untrained)
        parts.append("Large points are configurations.")
    if context.verdict.left_out:
        parts.append("Crosses mark levels beyond the run, which the verdict leaves out.")
    if context.against_baseline is not None:
        parts.append(f"The horizontal band is the baseline: its mean and {PERCENT} interval.")
    if context.levels.unbalanced:
        parts.append("The mean is of runs whose other settings are the same at all levels.")
    if len(untrained) > 1:
        parts.append(
            f"Dotted lines are scores without training; “{BEFORE}” is that of the encoder read as "
            "in this study."
        )
    if verdict.seeds > 1 and verdict.levels > 1:
        panels.append(("each level, within seeds", _paired(context)))
        smooth = f" The line is a smooth curve with a {PERCENT} band for the whole of it."
        parts += [
            "Second panel: each level minus the mean over levels, within seeds, on which the "
            f"answer rests; bars are {PERCENT} intervals, and rings mark the levels that are "
            f"statistically indistinguishable from the best.{smooth if _curves(context) else ''}"
        ]
    write = context.write
    shown = describe_curve(write.frame(curve), "The mean score is", decimals=write.decimals)
    return Drawing(
        _TITLE,
        panels,
        caption=" ".join(parts),
        alt=f"{shown} {verdict.sentence}",
        height=HEIGHT + _LINE * more,
    )


def _curves(context: StudyContext) -> bool:
    """Whether there are so many levels that a smooth curve says more than they do."""
    return len(context.paired) > MOST_MARKED and bool(len(context.smooth))


def _marks(context: StudyContext) -> bool:
    """Whether configurations have a colour and a marker: two components vary, in few values."""
    varied = _count_varied(context)
    return len(varied) == 2 and max(varied) <= _MOST_MARKED


def _count_varied(context: StudyContext) -> list[int]:
    """How many values each component of MTD has, of those that vary."""
    return [amount for amount in context.cells[[*PARTS]].nunique() if amount > 1]


def _study(context: StudyContext) -> Draw:
    cells, runs = context.cells, context.traced
    lines = choose_lines(context)

    def panel(ax: Axes) -> None:
        figures.draw_mtd_curve(
            context.curve,
            ax,
            runs=runs,
            value="score",
            name=context.score_label,
            beyond=context.verdict.left_out,
        )
        if _marks(context):
            stated = describe_means(cells, runs, by=MTD_COLUMNS, write=context.write)
            figures.draw_configurations(stated, ax)
        else:
            figures.draw_component_axis(cells, ax)
        figures.draw_untraced(context.untraced_by_method, ax)
        if (against := context.against_baseline) is not None:
            figures.draw_baseline(name_baseline(context.study), against.mean.estimate, ax)
        figures.draw_references(lines, ax)
        figures.add_legend(ax)

    return panel


def _paired(context: StudyContext) -> Draw:
    """The paired curve, whose levels state their best trial."""
    runs = context.traced.assign(level=merge_levels(context.traced["mtd"]))
    levels = context.paired.assign(level=context.paired["mtd"])
    before = "Deviation from the mean over levels. "
    stated = describe_means(levels, runs, by=["level"], write=context.write, before=before)
    return lambda ax: figures.draw_paired_curve(
        stated,
        ax,
        smooth=context.smooth if _curves(context) else context.smooth[:0],
        optimal=context.verdict.optimal_range,
    )


def _describe_seeds(context: StudyContext) -> str:
    """A sentence on in how many seeds the best level is above the ends of the range."""
    table, verdict = context.levels.table, context.verdict
    best, parts = verdict.peak_mtd, []
    if best not in table or len(table) < 2:
        return ""
    for end in sorted({verdict.first, verdict.last} & set(table) - {best}):
        if len(gains := (table[best] - table[end]).dropna()):
            above = f"{int((gains > 0).sum())} of {format_count(len(gains), 'seed')}"
            parts.append(f"than MTD {format_mtd(end)} in {above}")
    scores = f"scores {context.write.say('higher')}"
    return f"MTD {format_mtd(best)} {scores} {' and '.join(parts)}." if parts else ""


TOPIC = Topic("score", _TITLE, build, csv=["mtd_curve"], answers=(ShapeQuestion,))


def _build_correlation(context: StudyContext) -> Contents | None:
    """The correlations; None where no seed has enough levels of MTD."""
    # a mean of a level is over the same other settings as that of each other one
    scores = level_scores(context.curve_trials, context.study.compared, beyond_run="keep")
    balanced = scores.table.melt(value_name="score", ignore_index=False).reset_index()
    table = compute_correlations(context.write.frame(balanced.dropna()))
    if not len(table):
        return None
    levels, seeds = int(table["levels"].min()), int(table["seeds"].min())
    over = format_count(seeds, "seed")
    caption = f"Rank correlation of score and MTD within a seed, mean over {over}"
    caption += f", with its {PERCENT} t interval for these items." if seeds > 1 else "."
    text = (
        "Spearman and Kendall measure whether the score rises or falls with MTD: both are near 0 "
        "for an inverted U. Chatterjee's xi measures whether the score depends on MTD in any way, "
        f"an inverted U included; with {levels} levels it is at most "
        f"{(levels - 2) / (levels + 1):.2f}, and near 0 without a relation."
    )
    tables = [make_table(table, caption=caption, csv="correlation")]
    return Contents(csv={"correlation": table}, text=[text], tables=tables)


CORRELATION = Topic(
    "correlation", "Correlation of score and MTD", _build_correlation, csv=["correlation"]
)


def _build_published(context: StudyContext) -> Contents | None:
    """The study's curve beside the paper's; None for a program, or without two levels."""
    if len(context.paired) < 2 or context.study.program or context.write.is_turned:
        return None
    published, name = load_curve("figure2_mtd"), "deviation from the mean\nover its levels"
    centred = published.assign(**published[["mean", "low", "high"]] - published["mean"].mean())
    curves = {"this study": context.paired, "paper": centred}
    drawing = Drawing(
        "Shape of the curve beside that of the paper",
        [("", lambda ax: figures.draw_conditions(curves, ax, name=name))],
        caption=(
            f"Each curve minus its mean over its own levels, which differ; the paper's is figure 2 "
            f"({SOURCE}). Bands are {PERCENT} intervals. {_describe_levels(context)}"
        ),
        alt=describe_curve(published, "The published mean is"),
    )
    comparisons = context.comparisons.values()
    text = [describe_conditions(found) for found in comparisons if is_curve(found, context)]
    return Contents(figures={"mtd_published": drawing}, text=text, folded=True)


def _describe_levels(context: StudyContext) -> str:
    """A sentence on what the levels of MTD that are compared differ in, and what they share."""
    runs = context.levels.runs
    varied, conditions = join_words(varied_parts(runs)), shape_wording.describe_conditions(runs)
    return f"This study's levels differ in {varied or 'MTD'}{conditions and ', '}{conditions}."


PUBLISHED = Topic("published", "Beside the paper's curve", _build_published)


def _build_tasks(context: StudyContext) -> Contents | None:
    """The scores by task (`compute_tasks`), by name or method where there are; None without."""
    study = context.study
    trials = with_methods(study.trials, study.settings)
    by = ["method"] if varies_method(trials, study.settings) else []
    if study.names:
        by = [ANY, *by]
        trials = trials.assign(**{ANY: trials["number"].map(study.named).fillna("")})
    table = compute_tasks(trials, study.scores, by=by)
    if not len(table):
        return None
    wide = table.pivot(index=[*by, "mtd"], columns="task", values="mean")
    wide = wide[list(table["task"].unique())]
    if study.names:
        places = {name: place for place, name in enumerate(study.names)}
        wide = wide.sort_index(level=ANY, key=lambda names: names.map(places), sort_remaining=False)
        wide = wide.rename(index={"": MISSING})
    if missing := [name for name in STS if name not in wide]:
        average = f"No average: the study was not scored on {', '.join(missing)}."
    else:
        wide.insert(7, "STS average", wide[list(STS)].mean(axis=1))
        average = "The average is that of the seven STS tasks."
    caption = (
        "Mean score of each task by MTD, x 100: Spearman for STS, accuracy for transfer "
        f"tasks. {average} The CSV has trials, seeds and "
        "intervals over seeds, for these items."
    )
    tables = [make_table(wide.reset_index(), caption=caption, csv="tasks")]
    return Contents(csv={"tasks": table}, tables=tables)


BY_TASK = Topic("tasks", "Scores by task", _build_tasks, csv=["tasks"], group="Training")
