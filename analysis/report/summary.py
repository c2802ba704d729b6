"""A study in full sentences: its answer, the terms of its page, how numbers are computed.

For a notebook there are a figure and a small table as HTML.
"""

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import completed_runs, traced_runs, varied_settings
from mtdlab.analysis.inference.best import BestVerdict
from mtdlab.analysis.inference.verdict import Verdict, over_all_looks
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.report.cells import clean, format_count
from mtdlab.analysis.report.context import StudyContext, describe_splits
from mtdlab.analysis.report.findings import (
    Finding,
    find_answer,
    write_finding,
)
from mtdlab.analysis.report.headline import OF_BEST, ask, lead_with_training
from mtdlab.analysis.report.page import TERMS
from mtdlab.analysis.report.study_facts import describe_status, list_varied
from mtdlab.analysis.report.topics import configurations, effects, methods, score
from mtdlab.analysis.report.topics.base import LEAD_WIDTH, compose
from mtdlab.analysis.report.topics.baseline import Beside, find_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_SEEDS = (
    "Seeds are blocks: a seed affects all trials that use it, so trials do not count as "
    "independent. Means are over per-seed means, and intervals are t intervals over seeds, and "
    "over evaluation items where the text says so."
)
_GIVEN_ITEMS = (
    "The evaluation data are taken as given: intervals and tests cover other seeds, not other "
    "evaluation data."
)
_PUBLISHED = (
    "Published values come from BERT-base on a million Wikipedia sentences: compare shapes with "
    "them, not levels."
)
_PAIRED = (
    "Configurations are compared with seeds as blocks (least squares): by the paired difference of "
    "their scores where every configuration has every seed. Because the best is chosen by the same "
    "scores, the confidence intervals are simultaneous for "
    "all pairs; a difference is statistically significant if its interval excludes 0."
)


def describe_methods(context: StudyContext, finding: Finding) -> tuple[str, ...]:
    texts = [_SEEDS]
    if finding.topic in ("methods", "configurations"):
        texts.append(_PAIRED)
    if context.verdict.levels > 1:
        texts += _describe_verdict(context.verdict)
    is_own = context.study.program or context.has_no_mtd
    return tuple(texts) if is_own else (*texts, _PUBLISHED)


def _describe_verdict(verdict: Verdict) -> tuple[str, ...]:
    """Sentences on the tests of the shape over MTD, the data they hold for, and the best levels."""
    items = _GIVEN_ITEMS
    if verdict.items:
        items = (
            f"Intervals and tests also cover the sampling of the {verdict.items:,} evaluation "
            "items: the variance of a difference is that between seeds plus that of its influence "
            "over the items, which all seeds share. Items count as independent: where sentences "
            "stand in several evaluation pairs, these intervals are too narrow."
        )
    return (
        "The verdict on MTD comes from a model of the score with an effect of the seed and one of "
        "the level of MTD. It is “flat” if any two levels are shown to differ by less than "
        f"{verdict.margin:g} points (equivalence tests); if not, “peaked” if the slope of the "
        "score on log MTD up to an inner level and the slope down from it are both significant, "
        "adjusted for the choice of that level; if not, “rising” or “falling” if the slope over "
        "all levels is significant and that end is statistically indistinguishable from the best "
        "level; otherwise “inconclusive”. A test uses the least significant of three variances: "
        "that of the levels compared, that typical of all levels, and that between seeds, each of "
        "which may have a slope and a curvature of its own. Critical values are simulated for this "
        "design, with independent errors, with errors correlated between neighbouring levels, and "
        "with seeds that have slopes of their own.",
        items,
        "The levels that are statistically indistinguishable from the best come from multiple "
        "comparisons with the best: the best level is among them with a probability of at least "
        f"{100 * verdict.confidence:.3g} %{over_all_looks(verdict.over_looks)}.",
    )


def list_terms(study: StudyFrames) -> Mapping[str, str]:
    """The terms of the page: MTD, the settings that make it up or were varied, seed and score.

    Settings are described as they are declared; one without a description is left out.
    """
    is_other = study.table and not len(traced_runs(study.trials))
    terms = {} if is_other else {"MTD": TERMS["MTD"]}
    varied = varied_settings(study.trials, study.settings)
    for name in dict.fromkeys([*PARTS, "initial_queue_size", *varied]):
        if name in study.settings and (text := study.settings[name].description):
            terms[clean(study.settings[name].label)] = clean(text.replace("`", ""))
    terms["seed"] = TERMS["seed"]
    sentences = {name: f"{text[:1].upper()}{text[1:]}." for name, text in terms.items()}
    return sentences | {"score": f"{clean(study.metric)}, in points; higher is better."}


def _describe_training(runs: pd.DataFrame, program: str) -> str:
    before, after = runs["score_before"], runs["score"]
    both = np.isfinite(before.astype("float64"))
    if not both.any():
        return "" if program else "The score before training was not recorded."
    text = (
        f"Training changed the mean score from {before[both].mean():.2f} to "
        f"{after[both].mean():.2f} ({(after - before)[both].mean():+.2f} points)"
    )
    seeds = runs.groupby("seed")["score"].mean()
    if len(seeds) > 1:
        text += f"; the standard deviation of the per-seed means is {seeds.std():.2f} points"
    return text + "."


def summarise_study(context: StudyContext) -> tuple[str, ...]:
    """The verdict on the score against MTD, the trials it rests on, and the effect of training.

    Where methods were compared, the summary says how they differ, and that alone where MTD did not
    vary. Where only other settings varied, it says how the configurations differ. For a metric of
    the user's own it ends with what was reported and what selected.
    """
    runs = completed_runs(context.trials)
    seeds = format_count(runs["seed"].nunique(), "seed")
    completed = f"{format_count(len(runs), 'trial')} completed, {seeds}."
    compared, settings = context.once(methods.compute), context.once(configurations.compute)
    differences = methods.describe(context, compared) if compared is not None else ()
    if context.compares_methods and context.verdict.levels < 2:
        texts = (*differences, completed)
    elif settings is not None:
        together = context.once(effects.compute)
        of_settings = () if together is None else effects.describe(together)
        texts = (*configurations.describe(context, settings), *of_settings, completed)
    elif not len(context.traced):
        finding = context.once(find_answer)
        texts = (f"{finding.answer}. {finding.certainty}", score.describe_missing(context))
    else:
        training = _describe_training(context.traced, context.study.program)
        texts = (*differences, context.verdict.sentence, completed, training)
    return tuple(filter(None, (*texts, describe_splits(context.study))))


def state_verdict(context: StudyContext) -> Verdict | BestVerdict:
    """The verdict on what a page answers, the best method or configuration or the shape over MTD.

    Its sentence is the answer of the page; on the shape alone it names all levels that may be best.
    """
    finding = context.once(find_answer)
    shown = lead_with_training(context, finding)
    answer = context.best if finding.topic in OF_BEST or context.has_no_mtd else context.verdict
    if shown is finding and finding.topic == "score":
        return answer
    # the certainty of the finding on training states its effect
    stated = shown if shown is finding else replace(shown, effect=None)
    return replace(answer, sentence=write_finding(stated))


def find_baseline(context: StudyContext) -> Beside | None:
    """The baseline compared with the configuration that a page recommends; None without one."""
    return find_beside(context, context.once(find_answer).best)


def list_rows(context: StudyContext) -> dict[str, str]:
    """What a study asks, varied and shows, as text by name; empty where there is nothing to say."""
    study, beside = context.study, find_baseline(context)
    select_by = study.select_by or study.metric
    ranked = "" if select_by == study.metric else f"; {select_by} ranks the trials"
    return {
        "question": ask(context) if study.table else study.description,
        "varied": "; ".join(f"{name} {values}" for name, values in list_varied(study).items()),
        "score": f"{study.metric}, in points{ranked}",
        "finding": state_verdict(context).sentence,
        "baseline": beside.sentence.removeprefix("Baseline, ") if beside else "",
    }


def draw_study(study: StudyFrames) -> "Figure":
    """The main figure of the page: score against MTD, or the methods where there are several.

    Of runs without an MTD it is the comparison of configurations. Raises ValueError without a
    score.
    """
    context = StudyContext(study)
    compared, ranked = context.once(methods.compute), context.once(configurations.compute)
    drawing = score.draw(context) if compared is None else methods.draw(context, compared)
    if drawing is None and ranked is not None:
        drawing = configurations.draw(context, ranked)
    if drawing is None:
        raise ValueError(f"study {study.name}: no trial has completed with a score yet")
    with figures.figure_style(study.name):
        return compose(replace(drawing, width=LEAD_WIDTH))


def write_html(study: StudyFrames) -> str:
    """The study's name, status, and what it asks, varied and shows as a small table."""
    status = describe_status(study)
    rows = {"status": f"{status.kind}: {status.text}"} | list_rows(StudyContext(study))
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows.items()
        if text
    )
    return f"<div><b>Study {escape(study.name)}</b><table>{cells}</table></div>"
