"""Topics: training curves; collapse of symmetric structures over the steps (figures 5 and 6)."""

from dataclasses import replace

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import MOST_MARKED, describe_runs
from mtdlab.analysis.data.runs import format_mtd, mtd_or_0
from mtdlab.analysis.inference.best import with_methods
from mtdlab.analysis.questions.wording import PERCENT, clean
from mtdlab.analysis.report.cells import BAND, format_count, make_table
from mtdlab.analysis.report.context import describe_checkpoints
from mtdlab.analysis.report.topics.base import Contents, Draw, Drawing, StudyContext, Topic
from mtdlab.analysis.statistics.training import (
    COLLAPSE_COSINE,
    MOST_POINTS,
    MOST_TRIALS,
    choose_curves,
    compute_collapse,
    compute_training,
    compute_training_means,
    count_best_at_end,
    detect_collapse,
)


def build(context: StudyContext) -> Contents | None:
    """The curves; None where none was read, or a program reported one score of each trial."""
    curves = compute_training(context.study)
    if not len(curves) or (context.study.program and _has_one_score(curves)):
        return None
    trials = with_methods(context.trials, context.study.settings)
    ended = int(trials["state"].isin(["COMPLETE", "FAIL", "PRUNED"]).sum())
    text, known = _describe(context.trials, curves), _name_groups(context, trials, curves)
    written = context.written_in_training
    drawing = _draw(context, known.merge(curves, on="number"), text)
    if ended > len(choose_curves(trials)):
        more = f"{drawing.caption} Drawn: {MOST_TRIALS} trials, evenly chosen in the order of MTD."
        drawing = replace(drawing, caption=more)
    return Contents(
        csv={"training_curves": written.frame(curves[["number", "step", "loss", "score"]])},
        figures={"training_curves": drawing},
        text=[text],
    )


def _name_groups(context: StudyContext, trials: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """The trials of curves with seed, mtd (0 for none), text, trial and group.

    A group has the name of its configuration, else it is a method and an MTD.
    """
    methods = trials["method"] if "method" in trials else pd.Series("", index=trials.index)
    known = describe_runs(trials, write=context.write).assign(
        number=trials["number"],
        seed=trials["seed"],
        mtd=mtd_or_0(trials),
        method=[clean(context.name_method(name)) for name in methods],
    )
    known = known[known["number"].isin(curves["number"])]
    names_method, names_mtd = known["method"].nunique() > 1, known["mtd"].nunique() > 1
    groups = []
    for method, mtd in zip(known["method"], known["mtd"], strict=True):
        parts = [method] if names_method else []
        if names_mtd and mtd > 0:
            parts.append(f"MTD {format_mtd(mtd)}")
        groups.append(" ".join(parts) or ("no MTD" if names_mtd else "all trials"))
    names = context.study.names
    known["group"] = [*map(clean, context.study.call(known["number"], groups))]
    known = known.sort_values(["method", "mtd", "number"])
    if not names:
        return known
    places = {clean(name): place for place, name in enumerate(names)}
    known["method"] = known["group"]
    return known.sort_values("group", key=lambda group: group.map(places), kind="stable")


def _has_one_score(curves: pd.DataFrame) -> bool:
    """Whether no trial was evaluated more than once, so that there is no line to draw."""
    return bool(curves[curves["score"].notna()].groupby("number").size().le(1).all())


def _describe(trials: pd.DataFrame, curves: pd.DataFrame) -> str:
    if _has_one_score(curves):
        return "No trial was evaluated more than once during training."
    ends, known = count_best_at_end(trials)
    of = format_count(known, "trial")
    if not known:
        scored = curves[curves["score"].notna()].groupby("number")
        best = curves.loc[scored["score"].idxmax(), "step"].to_numpy()
        ends = int((best == scored["step"].max().to_numpy()).sum())
        of = f"{format_count(len(best), 'trial')} drawn"
    return f"{ends:,} of {of} scored best at their last evaluation."


def _draw(context: StudyContext, curves: pd.DataFrame, alt: str) -> Drawing:
    def panel(value: str, label: str) -> Draw:
        means = compute_training_means(curves, value=value)
        return lambda ax: figures.draw_training(curves, means, ax, value=value, label=label)

    few = curves["group"].nunique() <= MOST_MARKED
    interval = f", with its {PERCENT} interval over seeds," if few else ""
    lines = (
        f"The mean over seeds of the trials that reached the last step{interval} and a faint line "
        "per trial"
        if few or curves["method"].nunique() > 1
        else "A line per trial"
    )
    program = context.study.program
    label = context.score_label if program else context.selection_label
    value, is_line = "score", not _has_one_score(curves)
    if context.write.is_turned and not context.written_in_training.is_turned:
        # an axis of scores is that of the metric
        curves, value = curves.rename(columns={"score": "selecting score"}), "selecting score"
    panels = [("score at each evaluation", panel(value, label))] if is_line else []
    caption = f"{lines}. Scores are those that the program reported."
    if not program:
        chosen = ""
        if is_line:
            chosen = f" Scores: {label}; checkpoints were {describe_checkpoints(context.trials)}."
        panels.append(("training loss", panel("loss", "loss")))
        caption = (
            f"{lines}.{chosen} A point of the loss is the mean over a part of the steps, at most "
            f"{MOST_POINTS} per trial."
        )
    return Drawing("Training curves", panels, caption, alt)


TOPIC = Topic("training", "Training curves", build, csv=["training_curves"], group="Training")


_CRITERIA = (
    "A trial counts as collapsed from the first evaluation from which on, to its end, each "
    "evaluation shows one of these: the score is missing because every cosine is the same; the "
    "score lies under half of the highest until then, if that is above 0 (that before training "
    "counts where the study's metric is a correlation too); or the mean cosine of random pairs "
    f"is above {COLLAPSE_COSINE:g}, so that all embeddings coincide and scores are of rounding "
    "errors. A trial that failed because it had collapsed counts, without a step. Trials that were "
    "pruned or failed otherwise are not assessed."
)


def _build_collapse(context: StudyContext) -> Contents | None:
    """The collapses; None unless the study compares a symmetric structure with another."""
    detected = detect_collapse(context.study)
    if not len(detected):
        return None
    curves = compute_collapse(context.study)
    collapsed, n = (int(detected[name].sum()) for name in ("collapsed", "n"))
    text = f"Collapse was detected in {collapsed} of {format_count(n, 'trial')}."
    shown = detected.rename(columns={"first": "first step", "last": "last step"})
    if shown["prediction_layers"].nunique() == 1:
        shown = shown.drop(columns="prediction_layers")
    caption = f"Detected collapses. {_CRITERIA}"
    labels = {**context.labels, "failed": "failed otherwise"}
    return Contents(
        csv={"collapse": curves, "collapse_detected": detected},
        figures={"collapse": _draw_collapse(curves, context.selection_label, text)},
        text=[text],
        tables=[make_table(shown, caption=caption, csv="collapse_detected", labels=labels)],
        folded=not detected["collapsed"].any(),
    )


def _name_structure(table: pd.DataFrame) -> pd.Series:
    """η of each row as text, and its predictor where that varies."""
    names = [f"η {decay:g}" for decay in table["ema_decay"]]
    if table["prediction_layers"].nunique() > 1:
        predictors = [
            format_count(int(layers), "prediction layer") if layers else "no predictor"
            for layers in table["prediction_layers"]
        ]
        names = [", ".join(parts) for parts in zip(names, predictors, strict=True)]
    return pd.Series(names, index=table.index, dtype="str")


def _draw_collapse(curves: pd.DataFrame, score: str, alt: str) -> Drawing | None:
    if not len(curves):
        return None
    table = curves.assign(structure=_name_structure(curves))

    def panel(value: str, label: str) -> Draw:
        return lambda ax: figures.draw_structures(table, ax, value=value, label=label)

    return Drawing(
        "Score over steps by structure",
        [
            ("score at each evaluation", panel("mean", score)),
            ("mean cosine of random pairs", panel("mean_cosine", "mean cosine")),
        ],
        caption=(
            "As the paper's figures 5 and 6. The mean cosine is 1 if all vectors coincide. Scores "
            f"are of the pairs that choose the checkpoint. {BAND}"
        ),
        alt=alt,
    )


COLLAPSE = Topic(
    "collapse", "Collapse", _build_collapse, csv=["collapse", "collapse_detected"], group="Training"
)
