"""Writes one page over several studies, and each study's own page that it links to."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.data.tasks import label_score
from mtdlab.analysis.inference.best import BestVerdict
from mtdlab.analysis.inference.verdict import Verdict, join_words
from mtdlab.analysis.report import agreement
from mtdlab.analysis.report.cells import PERCENT, clean, make_table
from mtdlab.analysis.report.context import StudyContext, describe_selection
from mtdlab.analysis.report.page import (
    BasePage,
    Headline,
    NextStep,
    Recommendation,
    Status,
    trial_anchor,
)
from mtdlab.analysis.report.study_facts import (
    compare_command,
    describe_encoder,
    describe_status,
    list_facts,
)
from mtdlab.analysis.report.topics.base import Axes, Drawing, Table, Topic
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

_MOST_NAMED = 6
_MOST_COMMAND = 2_000


def _name(text: object) -> str:
    return clean(str(text), most=60)


def compare_studies(studies: Sequence[StudyFrames], overview: pd.DataFrame) -> Headline:
    """Sentences on which study has the highest mean score, on the verdicts, and on the states.

    Scores of different metrics are not compared. `overview` is `compute_overview` with a column
    verdict.
    """
    named = [_name(study.name) for study in studies]
    names = join_words(named) if len(named) <= _MOST_NAMED else f"{len(named)} studies"
    contexts = [StudyContext(study) for study in studies]
    covered = {describe_encoder(context) for context in contexts}
    encoder = f"{len(covered)} encoders, texts or programs" if len(covered) > 1 else covered.pop()
    commands = dict.fromkeys(study.command for study in studies if study.command)
    answer, certainty, recommendation, next_step = "No study has a score yet", "", None, None
    scored = overview[overview["mean"].notna()]
    if len(scored):
        verdicts = [
            f"{_name(study)} {verdict}"
            for study, verdict in zip(scored["study"], scored["verdict"], strict=True)
        ]
        certainty = (
            f"Verdicts on MTD: {', '.join(verdicts[:_MOST_NAMED])}. The best of several means is "
            "too high on average; compare studies at the same configuration."
        )
        answer = "The studies have different metrics, so their scores are not compared"
    if scored["metric"].nunique() == 1:
        best = scored.iloc[int(scored["mean"].argmax())]
        answer = f"{_name(best['study'])} has the highest mean {clean(str(best['metric']))}"
        recommendation = _recommend(best)
    if len(scored) > 1:
        next_step = NextStep(
            "Compare the configurations that two studies have in common, paired by seed (no "
            "trials):",
            clean(compare_command(studies[0], studies[1].name), most=_MOST_COMMAND),
        )
    return Headline(
        question=f"How do {names} compare?",
        answer=answer,
        certainty=certainty,
        kind="inconclusive",
        status=_status(studies),
        recommendation=recommendation,
        next_step=next_step,
        scope=f"Each interval covers other seeds, for these evaluation data only; {encoder}.",
        facts=_list_facts(contexts),
        rerun=clean("\n".join(commands), most=_MOST_COMMAND),
    )


def _list_facts(contexts: Sequence[StudyContext]) -> Mapping[str, str]:
    """The facts of the page: what each study varied, its data and metric, where the models are."""
    facts: dict[str, list[str]] = {"Varied": [], "Data and metric": []}
    for context in contexts[:_MOST_NAMED]:
        for name, text in list_facts(context).items():
            facts[name].append(f"{_name(context.study.name)}: {text}")
    shared = {text.partition(": ")[2] for text in facts["Data and metric"]}
    if len(shared) == 1:
        facts["Data and metric"] = list(shared)
    sentences = {name: ". ".join(texts) for name, texts in facts.items() if texts}
    return sentences | {"Models": "named on each study's own page"}


def _recommend(best: pd.Series) -> Recommendation:
    interval = ""
    if np.isfinite(best["low"]):
        interval = f" ({PERCENT} CI {best['low']:.2f} to {best['high']:.2f})"
    configuration = clean(str(best["setting"])) or "nothing varied"
    settings = {"study": _name(best["study"]), "configuration": configuration}
    text = f"Mean {best['mean']:.2f}{interval}, {int(best['seeds'])} seeds, for these items."
    return Recommendation("Highest mean", settings, text)


def _status(studies: Sequence[StudyFrames]) -> Status:
    """The status of the page: complete if all studies are, otherwise how many are in each state."""
    kinds = pd.Series([describe_status(study).kind for study in studies]).value_counts()
    text = ", ".join(f"{amount} {kind}" for kind, amount in kinds.items())
    kind = str(kinds.index[0]) if len(kinds) == 1 else ""
    planned = sum(study.planned for study in studies)
    failed = sum(int((study.trials["state"] == "FAIL").sum()) for study in studies)
    trials = f"{planned:,} trials, {f'{failed:,}' if failed else 'none'} failed"
    return Status(kind, f"{len(studies)} studies: {text}; {trials}")


_METHODS = (
    "Means are over per-seed means; intervals are t intervals over seeds, for these items. The "
    "best of several means is biased upwards, more so the more configurations a study has: compare "
    "studies at the same configuration before drawing conclusions from their best.",
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
        verdicts: those of their own pages, in the order of the studies.
        transfer: whether the first study's answer is compared with the others'.
        curves: `compute_curves`.
        metrics: the metrics of the studies with a curve.
        spectra: `compute_best_spectra`.
        ranks: `compute_ranks` of the spectra.
    """

    studies: Sequence[StudyFrames]
    verdicts: Sequence[Verdict | BestVerdict]
    transfer: bool

    @cached_property
    def overview(self) -> pd.DataFrame:
        """`compute_overview` with the verdict of each study that asks for one on levels of MTD."""
        verdicts = [
            answer.verdict
            if isinstance(answer, Verdict) and answer.levels_run > 1
            else "not applicable"
            for answer in self.verdicts
        ]
        return compute_overview(self.studies).assign(verdict=verdicts)

    @cached_property
    def curves(self) -> pd.DataFrame:
        return compute_curves(self.studies)

    @cached_property
    def spectra(self) -> pd.DataFrame:
        return compute_best_spectra(self.studies)

    @cached_property
    def ranks(self) -> pd.DataFrame:
        return compute_ranks(self.spectra)

    @property
    def metrics(self) -> list[str]:
        return list(self.curves["metric"].unique())

    @property
    def names(self) -> list[str]:
        return [study.name for study in self.studies]

    @property
    def note(self) -> str:
        """The note of every figure on the choice of checkpoints, or empty."""
        noted: dict[str, list[str]] = {}
        for study in self.studies:
            if selection := describe_selection(study.trials):
                noted.setdefault(selection, []).append(study.name)
        return "; ".join(f"{text}: {', '.join(names)}" for text, names in noted.items())


def _show_studies(context: Studies) -> tuple[Table, ...]:
    overview = context.overview
    done, planned = overview["completed"].astype("str"), overview["planned"].astype("str")
    shown = overview.drop(columns=["completed", "planned"])
    shown["setting"] = shown["setting"].replace("", "nothing varied")
    shown.insert(2, "trials", done + " of " + planned)
    labels = {"setting": "best configuration", "n": "trials of it", "mean": "best mean"}
    table = make_table(
        shown.rename(columns=labels),
        caption=(
            f"Each study's best configuration with its {PERCENT} CI over seeds, for these items, "
            "and its verdict on MTD. A study's name links to its page."
        ),
        csv="studies",
    )
    return (replace(table, links=tuple(f"../{quote(name)}/index.html" for name in context.names)),)


def describe_differences(studies: Sequence[StudyFrames]) -> str:
    """Sentences on the settings in which studies of one figure differ; none where they agree."""
    texts = []
    for name, values in find_shared_differences(studies).items():
        of = (f"{clean(value)} in {clean(', '.join(names))}" for value, names in values.items())
        texts.append(f"{name} ({'; '.join(of)})")
    return f" The studies differ in more than this: {', '.join(texts)}." if texts else ""


def with_curves(curves: pd.DataFrame) -> pd.DataFrame:
    """The studies with several levels of MTD, or with runs without one; all if none has several."""
    levels = curves.groupby("study")["mtd"].transform("nunique")
    return curves[(levels > 1) | (curves["mtd"] == 0)] if (levels > 1).any() else curves


def _draw_metric(context: Studies, metric: str) -> Drawing:
    every, studies = context.curves[context.curves["metric"] == metric], context.studies
    curves = with_curves(every)
    shown = [study for study in studies_by_method(studies) if study.name in set(curves["study"])]
    untraced = {study.name: ", ".join(StudyContext(study).untraced_by_method) for study in shown}
    alone = " Studies at a single MTD are in the table only." if len(curves) < len(every) else ""
    best = curves.iloc[int(curves["mean"].argmax())]
    evaluations = {study.evaluation_name for study in shown}
    label = clean(label_score(metric, evaluations.pop() if len(evaluations) == 1 else ""), most=60)
    names = context.names
    linked = curves.assign(href=[_address(row, names) for row in curves.to_dict("records")])

    def panel(ax: Axes) -> None:
        figures.draw_studies(linked, ax, studies=names, untraced=untraced, name=label)

    return Drawing(
        f"Score against maximum traceable distance: {clean(metric)}",
        [("", panel)],
        height=3.1,
        caption=(
            f"Mean over seeds for each study; the band is the {PERCENT} t interval, for these "
            "items. A horizontal line is the mean of trials without an MTD."
            f"{alone}{describe_differences(shown)}"
        ),
        alt=(
            f"The highest mean is {best['mean']:.2f}, of {clean(best['study'])} at MTD "
            f"{format_mtd(best['mtd'])}."
        ),
    )


def _address(row: Mapping[Hashable, Any], names: Sequence[str]) -> str:
    """The address that a point leads to: the row of its trial on its study's own page."""
    name = str(row["study"])
    owner = name if name in names else name.rpartition(": ")[0]
    return f"../{quote(owner)}/index.html#{trial_anchor(int(row['trial']))}"


def _describe_score(context: Studies) -> tuple[str, ...]:
    metrics = context.metrics
    if not metrics:
        return ("No completed trial has a score, so there is no curve.",)
    several = ""
    if len(metrics) > 1:
        several = (
            f"The studies have different metrics ({', '.join(map(clean, metrics))}), which are not "
            "drawn in one figure: their scores cannot be compared."
        )
    return (several, *(_draw_metric(context, metric).alt for metric in metrics))


def _describe_models(context: Studies) -> str:
    ranks = zip(context.ranks["model"], context.ranks["rank"], strict=True)
    return " ".join(f"{clean(model)}: effective rank {rank:.1f}." for model, rank in ranks)


def _draw_models(context: Studies) -> Drawing:
    return Drawing(
        "Singular values of the best models",
        [("", lambda ax: figures.draw_models(context.spectra, ax, studies=context.names))],
        height=4.4,
        caption=(
            "Singular values of the evaluation sentences' embeddings, each divided by the "
            "largest; dashed before training. A flatter line means that more dimensions are used."
        ),
        alt=_describe_models(context),
    )


def make_topics(context: Studies) -> tuple[Topic[Studies, Any], ...]:
    """The topics of the page, with a figure of curves for each metric."""
    curves, empty = context.curves.drop(columns=["text", "trial"]), context.overview["n"].isna()
    studies = Topic[Studies, Studies](
        name="studies",
        title="The studies",
        compute=lambda context: context,
        csv={"studies": lambda context: context.overview},
        text=lambda context: (
            f"{clean(name)} has no completed trial with a score yet."
            for name in context.overview.loc[empty, "study"]
        ),
        tables=_show_studies,
    )
    score = Topic[Studies, Studies](
        name="score",
        title="Score against maximum traceable distance",
        compute=lambda context: context,
        csv={"mtd_curves": lambda _: curves},
        figures={
            f"mtd_curves_{place}": partial(_draw_metric, metric=metric)
            for place, metric in enumerate(context.metrics, start=1)
        },
        text=_describe_score,
        tables=lambda _: (
            make_table(curves, caption="Mean score of each study by MTD.", csv="mtd_curves"),
        ),
    )
    models = Topic[Studies, Studies](
        name="spectra",
        title="Spectra",
        compute=lambda context: context if len(context.spectra) else None,
        csv={
            "spectra": lambda context: context.spectra.reset_index(),
            "effective_rank": lambda context: context.ranks,
        },
        figures={"spectra": _draw_models},
        text=lambda context: (_describe_models(context),),
        tables=lambda context: (
            make_table(
                context.ranks, caption="Effective rank of each model.", csv="effective_rank"
            ),
        ),
    )
    return studies, score, agreement.TOPIC, models


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
    pages = {
        study.name: write_report(study, out / study.name, generated=generated, version=version)
        for study in studies
    }
    context = Studies(studies, [page.verdict for page in pages.values()], transfer)
    topics, note = make_topics(context), context.note
    page = BasePage(
        name=clean(name),
        generated=generated,
        version=version,
        headline=compare_studies(studies, context.overview),
        limits=(f"{clean(note[0].upper() + note[1:])}.",) if note else (),
        methods=_METHODS,
    )
    infos = {topic.name: topic.compute(context) for topic in topics}
    earlier = [path.stem for path in (out / name / "figures").glob("mtd_curves_*.png")]
    files = write_page(out / name, page, topics, infos, note=note, earlier=earlier)
    transferred = infos["transfer"]
    agreements = tuple(transferred.agreements) if transferred else ()
    return MultiStudyReport(**vars(files), pages=pages, agreements=agreements)
