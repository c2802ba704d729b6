"""The first screen of a page over several studies."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.frames import StudyFrames
from analysis.report.cells import clean
from analysis.report.page import Headline, Recommendation, Status
from analysis.report.status import describe_status
from analysis.report.text import PERCENT
from analysis.verdict import Verdict

NOT_APPLICABLE = "not applicable"
_MOST_NAMED = 6


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
    return Headline(
        question=f"How do {names} compare?",
        answer=_answer(scored),
        certainty=_certainty(scored),
        kind="inconclusive",
        status=_status(studies),
        recommendation=_recommend(scored),
    )


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
    """Complete if all are; otherwise how many are in each state."""
    kinds = pd.Series([describe_status(study).kind for study in studies]).value_counts()
    text = ", ".join(f"{amount} {kind}" for kind, amount in kinds.items())
    kind = str(kinds.index[0]) if len(kinds) == 1 else ""
    return Status(kind, f"{len(studies)} studies: {text}")
