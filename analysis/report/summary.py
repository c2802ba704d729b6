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
from mtdlab.analysis.data.metric import ScoreFormat, as_read
from mtdlab.analysis.data.runs import traced_runs, varied_settings
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.questions.wording import capitalise, clean
from mtdlab.analysis.report.context import StudyContext, describe_splits
from mtdlab.analysis.report.headline import ask
from mtdlab.analysis.report.page import TERMS
from mtdlab.analysis.report.study_facts import describe_choice, describe_status, list_varied
from mtdlab.analysis.report.topics import TOPICS, score
from mtdlab.analysis.report.topics.base import LEAD_WIDTH, compose
from mtdlab.analysis.report.topics.baseline import compare_baseline
from mtdlab.analysis.report.topics.references import describe_standing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_SEEDS = (
    "Seeds are blocks: a seed affects all trials that use it, so trials do not count as "
    "independent. Means are over per-seed means, and intervals are t intervals over seeds, and "
    "over evaluation items where the text says so."
)
_PUBLISHED = (
    "Published values come from BERT-base on a million Wikipedia sentences: compare shapes with "
    "them, not levels."
)


def describe_methods(context: StudyContext) -> tuple[str, ...]:
    """Paragraphs on how the numbers of the page are computed."""
    texts = [_SEEDS, *context.question.explain()]
    if context.verdict.levels > 1:
        texts += [text for text in context.shape.explain() if text not in texts]
    is_own = context.study.program or context.has_no_mtd
    return tuple(texts) if is_own else (*texts, _PUBLISHED)


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
    sentences = {name: f"{capitalise(text)}." for name, text in terms.items()}
    return sentences | {"score": f"{clean(describe_metric(study))}."}


def describe_metric(study: StudyFrames) -> str:
    """The metric with its unit, and whether higher or lower is better."""
    write = study.score_format
    unit = "in points" if write.unit else "in its own unit"
    return f"{write.name}, {unit}; {write.say('higher')} is better"


def _describe_training(runs: pd.DataFrame, program: str, write: ScoreFormat) -> str:
    before, after = runs["score_before"], runs["score"]
    both = np.isfinite(before.astype("float64"))
    if not both.any():
        return "" if program else "The score before training was not recorded."
    change = write.difference((after - before)[both].mean())
    text = (
        f"Training changed the mean score from {write.score(before[both].mean())} to "
        f"{write.score(after[both].mean())} ({write.with_unit(change)})"
    )
    seeds = runs.groupby("seed")["score"].mean()
    if len(seeds) > 1:
        text += f"; the standard deviation of the per-seed means is {write.amount(seeds.std())}"
    return text + "."


def summarise_study(context: StudyContext) -> tuple[str, ...]:
    """The answer in full, the verdict on MTD where it varied, the effect of training.

    For a metric of the user's own it ends with what was reported and what selected.
    """
    runs, answer, verdict = context.runs, context.answer, context.verdict
    texts = context.question.describe() if len(runs) else ()
    if not len(context.traced) and not texts:
        texts = (f"{answer.heading}. {answer.certainty}", score.describe_missing(context))
    elif not texts or (context.compares_methods and verdict.levels > 1):
        training = _describe_training(context.traced, context.study.program, context.write)
        texts = (*texts, verdict.sentence, training)
    standing = describe_standing(context)
    return tuple(filter(None, (*texts, standing, describe_splits(context.study))))


def list_rows(context: StudyContext) -> dict[str, str]:
    """What a study asks, varied and shows, as text by name; empty where there is nothing to say."""
    study, baseline = context.study, compare_baseline(context)
    select_by = study.select_by or study.metric
    ranked = "" if select_by == study.metric else f"; {as_read(select_by)} ranks the trials"
    return {
        "question": ask(context),
        "description": study.description,
        "varied": "; ".join(f"{name} {values}" for name, values in list_varied(study).items()),
        "nuisance": describe_choice(study),
        "score": describe_metric(study) + ranked,
        "finding": context.answer.verdict.sentence,
        "baseline": baseline.sentence.removeprefix("Baseline, ") if baseline else "",
    }


def draw_study(study: StudyFrames) -> "Figure":
    """The page's main figure, else the score against MTD. Raises ValueError without a score."""
    context = StudyContext(study)
    found = [topic.build(context) for topic in TOPICS if topic.answers_to(context.answer.topic)]
    drawings = [drawing for contents in found if contents for drawing in contents.figures.values()]
    drawn = [*filter(None, [*drawings, score.draw(context)])]
    if not drawn:
        raise ValueError(f"study {study.name}: no trial has completed with a score yet")
    with figures.figure_style(study.name, study.score_format):
        return compose(replace(drawn[0], width=LEAD_WIDTH))


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
