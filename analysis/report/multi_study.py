"""Writes one page over several studies, and each study's own page that it links to."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.metric import POINTS, ScoreFormat, as_read
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.data.tasks import label_score
from mtdlab.analysis.inference.verdict import Verdict
from mtdlab.analysis.questions.next_steps import MOST_COMMAND, NextStep, command_on
from mtdlab.analysis.questions.wording import PERCENT, capitalise, clean, join_words
from mtdlab.analysis.report import agreement
from mtdlab.analysis.report.cells import format_count, make_table
from mtdlab.analysis.report.context import StudyContext, describe_selection
from mtdlab.analysis.report.page import BasePage, Headline, Status, trial_anchor
from mtdlab.analysis.report.study_facts import describe_encoder, describe_status, list_facts
from mtdlab.analysis.report.topics.base import Axes, Contents, Drawing, Topic
from mtdlab.analysis.report.topics.claims import (
    SIGNS,
    compare_tests,
    draw_claims,
    explain_claims,
    explain_verdicts,
    list_lines,
    show_claims,
    summarise_claims,
    tabulate_claims,
)
from mtdlab.analysis.report.writer import Files, Report, write_page, write_report
from mtdlab.analysis.statistics.multi_study import (
    Agreement,
    compute_best_spectra,
    compute_curves,
    compute_overview,
    compute_ranks,
    find_shared_differences,
    studies_by_method,
)

_MOST_NAMED, _MOST_ANSWERS, _MOST_CLAIMS = 6, 12, 8
_TOLD = {
    "flat": "is flat over MTD",
    "rising": "rises with MTD",
    "falling": "falls with MTD",
    "peaked": "peaks over MTD",
    "inconclusive": "shows no significant effect of MTD",
}
"""What a shape, without what is known of its end, says of the score."""


def _name(text: object) -> str:
    return clean(str(text), most=60)


def lead_with_answers(contexts: Sequence[StudyContext]) -> Headline:
    """The first screen: what each study answers to its main question, with its own error rate."""
    studies = [context.study for context in contexts]
    named = [_name(study.name) for study in studies]
    names = join_words(named) if len(named) <= _MOST_NAMED else f"{len(named)} studies"
    scored = [context for context in contexts if len(context.runs)]
    questions = {context.question.sentence for context in scored or contexts}
    asked = f"What do {names} show?"
    if len(questions) == 1:
        asked = f"{questions.pop()} ({names})"
    covered = {describe_encoder(context) for context in contexts}
    encoder = "; ".join(sorted(covered))
    if len(covered) > _MOST_NAMED:
        encoder = f"{len(covered)} encoders, texts or programs"
    commands = dict.fromkeys(study.command for study in studies if study.command)
    certainty, next_step = "", None
    if scored:
        certainty = "Each answer has the error rate of its own study."
    if len({study.metric for study in studies}) > 1:
        certainty += " The studies have different metrics, so their scores are not compared."
    if len(scored) > 1:
        next_step = NextStep(
            "Compare the configurations that two studies have in common, paired by seed (no "
            "trials):",
            clean(command_on(studies[0], "compare", studies[1].name), most=MOST_COMMAND),
        )
    return Headline(
        question=asked,
        answer=_summarise(scored),
        certainty=certainty,
        is_open=not any(context.answer.is_decided for context in scored),
        status=_status(studies),
        answers=_list_answers(scored),
        next_step=next_step,
        scope=f"Intervals cover other seeds than those that were run; {encoder}.",
        facts=_list_facts(contexts),
        rerun="\n".join(clean(command, most=MOST_COMMAND) for command in commands),
    )


def _summarise(contexts: Sequence[StudyContext]) -> str:
    """What the studies with a score decide, in a few words: the shapes where all are on MTD."""
    if not contexts:
        return "No study has a score yet"
    if all(context.question.is_over_mtd for context in contexts):
        by_shape: dict[str, list[str]] = {}
        for context in contexts:
            label = context.answer.judged.label
            told = context.write.say(_TOLD.get(label.partition(",")[0], f"is “{label}”"))
            by_shape.setdefault(told, []).append(_name(context.study.name))
        if len(contexts) <= _MOST_NAMED:
            parts = (f"{told} in {join_words(names)}" for told, names in by_shape.items())
            return f"The score {'; '.join(parts)}"
    decided = sum(context.answer.is_decided for context in contexts)
    return f"Decided in {decided or 'none'} of {format_count(len(contexts), 'study')}"


def _list_answers(contexts: Sequence[StudyContext]) -> tuple[str, ...]:
    """The answers of studies, a line each; of more than fit how many are left."""
    lines = []
    for context in contexts[:_MOST_ANSWERS]:
        answer = context.answer
        sign = SIGNS["replicated" if answer.is_decided else "undecided"]
        effect = f" {answer.effect.sentence}" if answer.effect else ""
        lines.append(f"{sign} {_name(context.study.name)}: {answer.heading}.{effect}")
    if (more := len(contexts) - _MOST_ANSWERS) > 0:
        lines.append(f"and {more} more")
    return tuple(lines)


def _list_facts(contexts: Sequence[StudyContext]) -> Mapping[str, str]:
    """The facts of the page: what each study varied, its data and metric.

    What is not the same in more studies than have room is left to their own pages.
    """
    facts: dict[str, list[str]] = {}
    for context in contexts:
        for name, text in list_facts(context).items():
            facts.setdefault(name, []).append(f"{_name(context.study.name)}: {text}")
    sentences = {}
    for name, texts in facts.items():
        if len(shared := {text.partition(": ")[2] for text in texts}) == 1:
            sentences[name] = shared.pop()
        elif len(contexts) <= _MOST_NAMED:
            sentences[name] = ". ".join(texts)
    return sentences


def describe_rates(contexts: Sequence[StudyContext]) -> str:
    """In how many studies everything that is compared has one learning rate; else empty."""
    fixed = 0
    for context in contexts:
        runs, name = context.runs, "learning_rate"
        if name in runs and runs[name].nunique() == 1 and name not in context.study.nuisance:
            fixed += 1
    if not fixed:
        return ""
    return (
        f"In {fixed} of {format_count(len(contexts), 'study')} all runs have one learning rate. At "
        "rates of their own what is compared may differ otherwise."
    )


def describe_added_seeds(studies: Sequence[StudyFrames]) -> str:
    """In which studies seeds were added to those that were planned, as recorded; else empty."""
    added: dict[tuple[int, int], list[str]] = {}
    for study in studies:
        for old, new in pairwise(study.plans):
            before, after = (max(plan.values["looks"]) for plan in (old, new))
            if new.trials and after > before:
                added.setdefault((before, after), []).append(_name(study.name))
    texts = []
    for (before, after), names in added.items():
        where = join_words(names) if len(names) <= _MOST_NAMED else f"{len(names)} studies"
        texts.append(f"from {before} to {after} in {where}")
    if not texts:
        return ""
    return (
        f"The number of seeds was raised after trials had started, {'; '.join(texts)}. Where a "
        "look at results led to that, no interval counts it."
    )


def _format_of(studies: Sequence[StudyFrames], metric: str) -> ScoreFormat:
    """How the scores of all studies of a metric are written."""
    formats = (study.score_format for study in studies if study.metric == metric)
    return min(formats, key=lambda write: write.margin)


def _status(studies: Sequence[StudyFrames]) -> Status:
    """The status of the page: complete if all studies are, otherwise how many are in each state."""
    kinds = pd.Series([describe_status(study).kind for study in studies]).value_counts()
    text = ", ".join(f"{amount} {kind}" for kind, amount in kinds.items())
    kind = str(kinds.index[0]) if len(kinds) == 1 else ""
    planned = sum(study.planned for study in studies)
    failed = sum(int((study.trials["state"] == "FAIL").sum()) for study in studies)
    counted = f"{planned:,} trials, {failed:,} failed"
    return Status(kind, f"{len(studies)} studies: {text}; {counted}")


_METHODS = (
    "Means are over per-seed means; intervals are t intervals over seeds, for these items. The "
    "best of several means is too good on average, more so the more configurations a study has: "
    "compare studies at the same configuration before drawing conclusions from their best.",
    "Spectra are of the trial with each study's best score, each divided by its largest value.",
)


@dataclass(frozen=True)
class MultiStudyReport(Files):
    """Where a page over several studies was written, and each study's own by its name.

    Attributes:
        agreements: how the first study's answer agrees with the others', where this was requested.
    """

    pages: Mapping[str, Report]
    agreements: tuple[Agreement, ...] = ()

    def __repr__(self) -> str:
        own = (f"{name}: {report.page}" for name, report in self.pages.items())
        return "\n".join([str(self.page), *own])


@dataclass(frozen=True)
class Studies:
    """The studies of a page over several studies, with what its topics need.

    Attributes:
        contexts: the studies, each with the results that its page and this one share.
        overview: `compute_overview` with the verdict of each study that asks for one on levels of
            MTD.
        agreements: how the first study's answer agrees with the others', where this was requested.
        claims: the claims of the papers (`tabulate_claims`); no rows where no study is about one.
        sections: the anchors of the sections on each study's own page.
    """

    contexts: Sequence[StudyContext]
    overview: pd.DataFrame
    agreements: tuple[Agreement, ...] | None
    claims: pd.DataFrame
    sections: Mapping[str, Sequence[str]]

    @property
    def studies(self) -> list[StudyFrames]:
        return [context.study for context in self.contexts]

    @property
    def names(self) -> list[str]:
        return [study.name for study in self.studies]

    @property
    def fits_figure(self) -> bool:
        """Whether one figure can name all of the studies."""
        return len(self.contexts) <= _MOST_ANSWERS


def _format_of_all(context: Studies) -> ScoreFormat:
    """How the numbers of a table of all studies are written, which are as they were read."""
    metrics = {study.metric for study in context.studies}
    return _format_of(context.studies, *metrics).unsigned if len(metrics) == 1 else POINTS


def _build_studies(context: Studies) -> Contents:
    overview = as_read_by_row(context.overview)
    done, planned = overview["completed"].astype("str"), overview["planned"].astype("str")
    shown = overview.drop(columns=["completed", "planned"])
    shown["setting"] = shown["setting"].replace("", "nothing varied")
    shown.insert(2, "trials", done + " of " + planned)
    scores = ""
    if shown["metric"].nunique() == 1:
        scores = f" Scores are {clean(shown.pop('metric').iloc[0])}."
    table = make_table(
        shown,
        caption=(
            f"Each study's best configuration with its {PERCENT} CI over seeds, for these items, "
            f"and its verdict on MTD.{scores}"
        ),
        csv="studies",
        labels={"setting": "best configuration", "n": "trials of it", "mean": "best mean"},
        most=len(shown),
        write=_format_of_all(context),
    )
    links = tuple(f"../{quote(name)}/index.html" for name in context.names)
    empty = overview.loc[overview["n"].isna(), "study"]
    text = [f"{clean(name)} has no completed trial with a score yet." for name in empty]
    return Contents(csv={"studies": overview}, text=text, tables=[replace(table, links=links)])


def as_read_by_row(table: pd.DataFrame) -> pd.DataFrame:
    """A table of scores of several metrics, and their names, as they were read."""
    parts = [ScoreFormat(str(metric)).frame(part) for metric, part in table.groupby("metric")]
    whole = pd.concat([table[:0], *parts]).loc[table.index]
    return whole.assign(metric=[as_read(metric) for metric in whole["metric"]])


def describe_differences(studies: Sequence[StudyFrames]) -> str:
    """Sentences on the settings in which studies of one figure differ; none where they agree."""
    texts = []
    for name, values in find_shared_differences(studies).items():
        of = (f"{clean(value)} in {clean(', '.join(names))}" for value, names in values.items())
        texts.append(f"{name} ({'; '.join(of)})")
    return f" The studies differ in more than this: {', '.join(texts)}." if texts else ""


def _draw_metric(context: Studies, curves: pd.DataFrame) -> Drawing:
    write = _format_of(context.studies, str(curves["metric"].iloc[0]))
    drawn, studies = set(curves["study"]), studies_by_method(context.studies)
    shown = [study for study in studies if study.name in drawn]
    untraced = {study.name: ", ".join(StudyContext(study).untraced_by_method) for study in shown}
    best = curves.iloc[int(curves["mean"].argmax())]
    evaluations = {study.evaluation_name for study in shown}
    evaluation = evaluations.pop() if len(evaluations) == 1 else ""
    label = clean(label_score(write.name, evaluation, write.axis_unit), most=60)
    names = context.names
    linked = curves.assign(href=[_address(row, names) for row in curves.to_dict("records")])

    def panel(ax: Axes) -> None:
        figures.draw_studies(linked, ax, studies=names, untraced=untraced, name=label)

    return Drawing(
        f"Score against maximum traceable distance: {clean(write.name)}",
        [("", panel)],
        caption=(
            f"Mean over seeds for each study; the band is the {PERCENT} t interval, for these "
            "items. A horizontal line is the mean of trials without an MTD."
            f"{describe_differences(shown)}"
        ),
        alt=(
            f"The {write.say('highest')} mean is {write.score(best['mean'])}, of "
            f"{clean(best['study'])} at MTD {format_mtd(best['mtd'])}."
        ),
        scores=write,
    )


def _address(row: Mapping[Hashable, Any], names: Sequence[str]) -> str:
    """The address that a point leads to: the row of its trial on its study's own page."""
    name = str(row["study"])
    owner = name if name in names else name.rpartition(": ")[0]
    return f"../{quote(owner)}/index.html#{trial_anchor(int(row['trial']))}"


def _build_score(context: Studies) -> Contents | None:
    if not context.fits_figure:
        return None
    every = compute_curves(context.studies)
    metrics = every["metric"].unique()
    curves = as_read_by_row(every.drop(columns=["text", "trial"]))
    drawings = [_draw_metric(context, every[every["metric"] == metric]) for metric in metrics]
    text = [drawing.alt for drawing in drawings]
    if not drawings:
        text = ["No completed trial has a score, so there is no curve."]
    elif len(metrics) > 1:
        listed = ", ".join(clean(as_read(name)) for name in metrics)
        several = (
            f"The studies have different metrics ({listed}), which are not drawn in one "
            "figure: their scores cannot be compared."
        )
        text.insert(0, several)
    caption = "Mean score of each study by MTD."
    return Contents(
        csv={"mtd_curves": curves},
        figures={f"mtd_curves_{at}": drawing for at, drawing in enumerate(drawings, start=1)},
        text=text,
        tables=[
            make_table(curves, caption=caption, csv="mtd_curves", write=_format_of_all(context))
        ],
    )


def _build_models(context: Studies) -> Contents | None:
    spectra = compute_best_spectra(context.studies) if context.fits_figure else pd.DataFrame()
    if not len(spectra):
        return None
    ranks = compute_ranks(spectra)
    named = zip(ranks["model"], ranks["rank"], strict=True)
    text = " ".join(f"{clean(model)}: effective rank {rank:.1f}." for model, rank in named)
    drawing = Drawing(
        "Singular values of the best models",
        [("", lambda ax: figures.draw_models(spectra, ax, studies=context.names))],
        caption=(
            "Singular values of the evaluation sentences' embeddings, each divided by the "
            "largest; dashed before training. A flatter line means that more dimensions are used."
        ),
        alt=text,
    )
    caption = "Effective rank of each model."
    return Contents(
        csv={"spectra": spectra.reset_index(), "effective_rank": ranks},
        figures={"spectra": drawing},
        text=[text],
        tables=[make_table(ranks, caption=caption, csv="effective_rank")],
    )


def ask_of_claims(headline: Headline, claims: pd.DataFrame) -> Headline:
    """The first screen of a page on which at least half of the studies are about claims."""
    return replace(
        headline,
        question="Which claims of the papers hold in these studies?",
        answer=summarise_claims(claims),
        certainty=explain_claims(claims),
        claims=list_lines(claims, most=_MOST_CLAIMS),
        answers=(),
        next_step=None,
    )


def _build_claims(context: Studies) -> Contents | None:
    if not len(context.claims):
        return None
    tables, drawn = [show_claims(context.claims, context.sections)], draw_claims(context.claims)
    text = (explain_verdicts(context.claims), compare_tests(context.claims))
    return Contents(csv={"claims": context.claims}, text=text, tables=tables, figures=drawn)


TOPICS = (
    Topic[Studies]("claims", "Claims of the papers", _build_claims, csv=["claims"]),
    Topic[Studies]("studies", "The studies", _build_studies, csv=["studies"]),
    Topic[Studies](
        "score", "Score against maximum traceable distance", _build_score, csv=["mtd_curves"]
    ),
    Topic[Studies](
        "transfer",
        "Does the first study predict the others?",
        lambda context: agreement.build(context.studies, context.agreements),
        csv=[agreement.AGREEMENT, agreement.CANDIDATES],
    ),
    Topic[Studies]("spectra", "Spectra", _build_models, csv=["spectra", "effective_rank"]),
)


def write_multi_study(
    studies: Sequence[StudyFrames],
    out: Path,
    *,
    name: str,
    generated: str,
    version: str,
    transfer: bool = False,
) -> MultiStudyReport:
    """Write each study's own page into `out / STUDY` and one over all into `out / name`.

    The same arguments give the same bytes. Raises ValueError for a name that is a study's, and
    OSError if a folder cannot be written.

    Args:
        studies: one or more, of different names, also unfinished ones and those without a score.
        name: the name of the page's folder, which no study has.
        transfer: whether to compare the first study's answer with the others'
            (`mtdlab.analysis.statistics.multi_study`).
        generated, version: as for `write_report`.
    """
    if name in {study.name for study in studies}:
        raise ValueError(f"the page cannot be called {name}: one of its studies is; choose another")
    contexts = [StudyContext(study) for study in studies]
    pages = {
        context.study.name: write_report(
            context, out / context.study.name, generated=generated, version=version
        )
        for context in contexts
    }
    agreements = agreement.compute(studies) if transfer else None
    verdicts = [
        answer.label
        if isinstance(answer := page.verdict, Verdict) and answer.levels_run > 1
        else "not applicable"
        for page in pages.values()
    ]
    overview = compute_overview(studies).assign(verdict=verdicts)
    noted: dict[str, list[str]] = {}
    for study in studies:
        noted.setdefault(describe_selection(study.trials), []).append(study.name)
    note = "; ".join(f"{text}: {', '.join(names)}" for text, names in noted.items() if text)
    claims = tabulate_claims(contexts, every=True)
    about = claims.loc[claims["study"] != "", "study"].nunique()
    headline = lead_with_answers(contexts)
    if 2 * about >= len(studies):
        headline = ask_of_claims(headline, claims)
    added = describe_added_seeds(studies)
    whole = BasePage(
        name=clean(name),
        generated=generated,
        version=version,
        headline=headline,
        limits=(
            *filter(
                None,
                (f"{clean(capitalise(note))}." if note else "", describe_rates(contexts), added),
            ),
        ),
        methods=_METHODS,
    )
    sections = {study: page.sections for study, page in pages.items()}
    context = Studies(contexts, overview, agreements, claims if about else claims[:0], sections)
    files = write_page(out / name, whole, TOPICS, context, note=note)
    return MultiStudyReport(**vars(files), pages=pages, agreements=agreements or ())
