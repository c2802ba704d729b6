"""The first screen of a page over several studies."""

import shlex
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.frames import StudyFrames
from analysis.report.cells import clean
from analysis.report.commands import option
from analysis.report.context import StudyContext
from analysis.report.page import Headline, NextStep, Recommendation, Status
from analysis.report.scope import describe_encoder, list_facts
from analysis.report.status import describe_status
from analysis.report.text import PERCENT
from analysis.verdict import Verdict

NOT_APPLICABLE = "not applicable"
_MOST_NAMED = 6
_MOST_COMMAND = 2_000


def describe_verdict(verdict: Verdict) -> str:
    """The verdict on MTD; not applicable where fewer than two levels of MTD have a score."""
    return verdict.verdict if verdict.levels_run > 1 else NOT_APPLICABLE


def compare_studies(studies: Sequence[StudyFrames], overview: pd.DataFrame) -> Headline:
    """Which study has the highest mean score, each one's verdict, and how far they are.

    overview  `compute_overview` with a column verdict.

    Scores of different metrics are not compared.
    """
    names = _list(overview["study"])
    scored = overview[overview["mean"].notna()]
    contexts = [StudyContext(study) for study in studies]
    covered = {describe_encoder(context) for context in contexts}
    commands = dict.fromkeys(study.command for study in studies if study.command)
    return Headline(
        question=f"How do {names} compare?",
        answer=_answer(scored),
        certainty=_certainty(scored),
        kind="inconclusive",
        status=_status(studies),
        recommendation=_recommend(scored),
        next_step=_compare(studies) if len(scored) > 1 else None,
        scope="Each interval covers other seeds, for these evaluation data only; "
        + (covered.pop() if len(covered) == 1 else f"{len(covered)} encoders, texts or programs")
        + ".",
        facts=_list_facts(contexts),
        rerun=clean("\n".join(commands), most=_MOST_COMMAND),
    )


def _compare(studies: Sequence[StudyFrames]) -> NextStep:
    """The comparison of the first two studies, which needs no training."""
    first, second = studies[:2]
    words = ["mtdlab", "compare", first.name, second.name]
    if storage := option(first.command, "--storage"):
        words += ["--storage", storage]
    return NextStep(
        "Compare the configurations that two studies have in common, paired by seed (no trials):",
        clean(shlex.join(words), most=_MOST_COMMAND),
    )


def _list_facts(contexts: Sequence[StudyContext]) -> Mapping[str, str]:
    """What each study varied, its data and metric, and where the models are."""
    facts: dict[str, list[str]] = {"Varied": [], "Data and metric": []}
    for context in contexts[:_MOST_NAMED]:
        for name, text in list_facts(context).items():
            facts[name].append(f"{clean(context.study.name, most=60)}: {text}")
    shared = {text.partition(": ")[2] for text in facts["Data and metric"]}
    if len(shared) == 1:
        facts["Data and metric"] = list(shared)
    found = {name: ". ".join(texts) for name, texts in facts.items() if texts}
    return found | {"Models": "named on each study's own page"}


def _list(names: pd.Series) -> str:
    texts = [clean(str(name), most=60) for name in names]
    if len(texts) > _MOST_NAMED:
        return f"{len(texts)} studies"
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _answer(scored: pd.DataFrame) -> str:
    if not len(scored):
        return "No study has a score yet"
    if scored["metric"].nunique() > 1:
        return "The studies have different metrics, so their scores are not compared"
    best = scored.iloc[int(scored["mean"].argmax())]
    return f"{clean(str(best['study']), most=60)} has the highest mean {clean(str(best['metric']))}"


def _certainty(scored: pd.DataFrame) -> str:
    if not len(scored):
        return ""
    verdicts = ", ".join(
        f"{clean(str(study), most=60)} {verdict}"
        for study, verdict in scored[["study", "verdict"]].head(_MOST_NAMED).itertuples(index=False)
    )
    return (
        f"Verdicts on MTD: {verdicts}. The best of several means is too high on average; compare "
        "studies at the same configuration."
    )


def _recommend(scored: pd.DataFrame) -> Recommendation | None:
    if not len(scored) or scored["metric"].nunique() > 1:
        return None
    best = scored.iloc[int(scored["mean"].argmax())]
    interval = ""
    if np.isfinite(best["low"]):
        interval = f" ({PERCENT} CI {best['low']:.2f} to {best['high']:.2f})"
    settings = {"study": clean(str(best["study"]), most=60)}
    settings["configuration"] = clean(str(best["setting"])) or "nothing varied"
    text = f"Mean {best['mean']:.2f}{interval}, {int(best['seeds'])} seeds."
    return Recommendation("Highest mean", settings, text)


def _status(studies: Sequence[StudyFrames]) -> Status:
    """Complete if all are; otherwise how many are in each state; and the trials that failed."""
    kinds = pd.Series([describe_status(study).kind for study in studies]).value_counts()
    text = ", ".join(f"{amount} {kind}" for kind, amount in kinds.items())
    kind = str(kinds.index[0]) if len(kinds) == 1 else ""
    planned = sum(study.planned for study in studies)
    failed = sum(int((study.trials["state"] == "FAIL").sum()) for study in studies)
    trials = f"{planned:,} trials, {f'{failed:,}' if failed else 'none'} failed"
    return Status(kind, f"{len(studies)} studies: {text}; {trials}")
