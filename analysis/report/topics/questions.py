"""Topics: the differences that the main question is about; all declared questions."""

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.durations import list_first
from mtdlab.analysis.data.points import describe_means
from mtdlab.analysis.data.questions import ANY
from mtdlab.analysis.data.settings import name_setting
from mtdlab.analysis.inference.pairing import summarise_deviations, summarise_scores
from mtdlab.analysis.questions.additions import AdditionsQuestion
from mtdlab.analysis.questions.answer import Difference
from mtdlab.analysis.questions.base import Question
from mtdlab.analysis.questions.differences import DifferencesQuestion, name_value, name_within
from mtdlab.analysis.questions.study import list_declared
from mtdlab.analysis.questions.wording import PERCENT, clean, describe_recorded
from mtdlab.analysis.report.cells import make_table
from mtdlab.analysis.report.topics.base import Axes, Contents, Drawing, StudyContext, Topic

_MOST_LOST = 6


def _build_difference(context: StudyContext) -> Contents | None:
    """The differences with their intervals; None where the main question is of another kind."""
    question = context.question
    if not isinstance(question, DifferencesQuestion) or question.obstacle:
        return None
    names = question.family_of_differences.names
    sizes = pd.DataFrame(map(vars, question.judged.sizes))
    table = context.write.frame(sizes).assign(difference=names)[["difference", *sizes]]
    shown = make_table(
        table.rename(columns={"difference": "comparison"}),
        caption="The differences asked about, with simultaneous intervals.",
        csv="question",
        labels={
            "mean": context.write.unit or context.write.name,
            "low": f"{100 * question.judged.confidence:.3g} % CI",
        },
        # the table has them as they were read
        write=context.write.unsigned,
    )
    drawing = _draw(context, question)
    return Contents(csv={"question": table}, figures={"question": drawing}, tables=[shown])


def _draw(context: StudyContext, question: DifferencesQuestion) -> Drawing:
    """The means of what is compared, by the setting asked about and at most one other.

    Of additions the differences themselves.
    """
    if isinstance(question, AdditionsQuestion):
        return _draw_additions(context, question)
    names = [str(name) for name in question.factors.values][:2]
    runs, [first, *others] = question.runs, names
    settings = " and ".join(clean(name_setting(name), most=40) for name in names)
    title = f"Score by {settings}{name_within(question.asked)}"
    caption = f"Bars are {PERCENT} CIs over seeds, for these items."
    if others:
        cells = summarise_deviations(runs, *names)
        panel = "", lambda ax: figures.draw_interaction(cells, ax, first=first, second=others[0])
        caption = f"The score minus its seed's mean, averaged over seeds. {caption}"
        drawn = {*zip(cells["first"], cells["second"], strict=True)}
        lost = [
            f"{name_value(first, one)} with {name_value(others[0], other)}"
            for one, other in runs[names].drop_duplicates().itertuples(index=False)
            if (one, other) not in drawn
        ]
        if lost:
            named = list_first(lost, _MOST_LOST, "; ")
            caption += f" Not drawn, with scores of too few seeds: {named}."
        return Drawing(title, [panel], caption, context.answer.sentence)
    means = summarise_scores(runs, by=[first], items=context.study.items)
    means = describe_means(means, runs, by=[first], write=context.write)
    rows, score = [clean(str(value)) for value in means[first]], context.score_label
    label = clean(name_setting(first))
    panel = "", lambda ax: figures.draw_rows(means, ax, names=rows, label=label, name=score)
    height, alt = 1.1 + 0.4 * len(means), context.answer.sentence
    return Drawing(title, [panel], caption, alt, height, rigid=True)


def _draw_additions(context: StudyContext, question: AdditionsQuestion) -> Drawing:
    """Each difference with its interval, a row each."""
    judged, names = question.judged, [*map(clean, question.added)]
    said = [
        Difference(size, judged.confidence, name, score_format=context.write).sentence
        for name, size in zip(question.family_of_differences.names, judged.sizes, strict=True)
    ]
    trials = [
        question.runs.loc[question.runs[ANY] == name, "number"].min() for name in question.added
    ]
    table = pd.DataFrame(map(vars, judged.sizes)).assign(text=said, trial=trials)
    bars = f"{100 * judged.confidence:.3g} % CI"

    def panel(ax: Axes) -> None:
        ax.axvline(0, color=figures.RUN, linewidth=1)
        unit = f"difference, {context.write.axis_unit}"
        figures.draw_rows(
            table, ax, names=names, label="", name=unit, drawn="mean over seeds", interval=bars
        )

    title = "Difference of each addition to the configuration before it"
    caption = f"Bars are {bars}s, simultaneous for all rows: what does not reach 0 is shown."
    height, alt = 1.1 + 0.4 * len(table), context.answer.sentence
    return Drawing(title, [("", panel)], caption, alt, height, rigid=True)


DIFFERENCE = Topic(
    "difference",
    "The difference asked about",
    _build_difference,
    csv=["question"],
    answers=(DifferencesQuestion,),
)


def _build_declared(context: StudyContext) -> Contents | None:
    """The declared questions with their answers; None where the study file declares none."""
    if not list_declared(context.study) or not len(context.runs):
        return None
    asked = [context.question, *context.others]
    table = pd.DataFrame([_tabulate(context, question) for question in asked])
    caption = (
        "The questions of the study file with their answers. The first is the main one; the others "
        "that were declared before the first trial share one error rate (Holm's rule). Intervals "
        "are at the confidence at which a question was judged."
    )
    labels = {"difference": "difference"}
    shown = make_table(table, caption=caption, csv="questions", labels=labels)
    # the first screen has the answer of an only question
    return Contents(csv={"questions": table}, tables=[shown] if context.others else [])


def _tabulate(context: StudyContext, question: Question) -> dict[str, object]:
    """A row; without the interval of a difference that the page states above."""
    answer = question.answer
    effect = answer.effect
    is_main = question is context.question
    is_stated = effect and not is_main and context.states_difference(effect.size.mean)
    return {
        "question": clean(question.sentence),
        "declared": describe_recorded(question.after or 0),
        "answer": clean(answer.heading),
        "outcome": answer.outcome.value,
        "comparison": clean(effect.text) if effect else "",
        "difference": effect.value if effect else "",
        "interval": effect.interval if effect and not is_stated else "",
    }


DECLARED = Topic("questions", "The questions of the study", _build_declared, csv=["questions"])
