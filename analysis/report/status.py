"""How far a study is, why trials failed, and the command that runs them again."""

from analysis.frames import StudyFrames
from analysis.report.cells import clean
from analysis.report.commands import extend, runs
from analysis.report.page import Status
from analysis.report.text import count
from analysis.study_state import find_state

_MOST_REASONS = 3
_MOST_LETTERS = 120


def describe_status(study: StudyFrames) -> Status:
    """The study's state (`find_state`), with the number of trials in each state."""
    states = study.trials["state"].value_counts()
    done, failed, pruned, running = (
        int(states.get(name, 0)) for name in ("COMPLETE", "FAIL", "PRUNED", "RUNNING")
    )
    waiting = max(study.planned - done - failed - pruned - running, 0)
    counts = {"COMPLETE": done, "RUNNING": running, "WAITING": waiting}
    kind = find_state(counts, begun=len(study.trials))
    others = {"failed": failed, "pruned": pruned, "running": running, "waiting": waiting}
    parts = [f"{amount:,} {name}" for name, amount in others.items() if amount]
    if kind == "complete" and not failed:
        parts.append("none failed")
    text = ", ".join([f"{done:,} of {count(study.planned, 'trial')} complete", *parts])
    retry = ""
    if failed and runs(study.command, "sweep"):
        retry = extend(study.command, "--retry-failed")
    return Status(kind, text, _list_failures(study), clean(retry, most=2_000))


def _list_failures(study: StudyFrames) -> tuple[str, ...]:
    """The commonest reasons of failed trials."""
    failed = study.trials[study.trials["state"] == "FAIL"]
    reasons = failed["reason"].replace("", "reason not recorded").value_counts()
    texts = [
        f"{count(int(amount), 'trial')} failed: {clean(str(reason), most=_MOST_LETTERS)}"
        for reason, amount in reasons.head(_MOST_REASONS).items()
    ]
    if (more := len(reasons) - _MOST_REASONS) > 0:
        texts.append(f"{count(more, 'more reason')}: see the trials")
    return tuple(texts)
