"""Topic: what the verdict is judged by, when that was specified, and the looks at it."""

import itertools
from dataclasses import dataclass

import pandas as pd

from analysis.data.frames import Plan, StudyFrames
from analysis.inference.interim_analysis import describe_recorded
from analysis.inference.verdict import format_p
from analysis.report.cells import clean, count, make_table
from analysis.report.context import StudyContext
from analysis.report.page import Table
from analysis.report.topics.base import Topic

_LABELS = {
    "runs": "trials",
    "alpha": "nominal level",
    "spent": "error probability spent so far",
    "p_value": "p",
    "added": "trials added",
}
_SPECIFIED = ("metric", "margin", "alpha", "looks")
_ENDS = {
    "decided": "The study ended there, because its verdict was decided.",
    "flat": "The study ended there for futility: the score is flat within the margin.",
    "max_seeds": "The study ended there without a verdict, at its largest number of seeds.",
    "no scores": "The study ended there, because there was nothing to compare.",
}


@dataclass(frozen=True)
class Looks:
    """The looks as a table, and the specifications from the first to the present one.

    Attributes:
        planned: at how many numbers of seeds the verdict is computed.
        fixed_runs: how many runs all configurations with all seeds have.
    """

    table: pd.DataFrame
    plans: tuple[Plan, ...]
    planned: int
    fixed_runs: int


def compute(context: StudyContext) -> Looks | None:
    """None for a study that recorded neither."""
    study = context.study
    if not study.plans and not len(study.looks):
        return None
    planned = list(study.plans[-1].values["looks"]) if study.plans else [0]
    return Looks(
        study.looks.drop(columns="trials"),
        study.plans,
        len(planned),
        _configurations(study) * planned[-1],
    )


def _configurations(study: StudyFrames) -> int:
    return int(study.trials.groupby("seed").size().max()) if len(study.trials) else 0


def describe(info: Looks) -> tuple[str, ...]:
    """What was specified and when; the last look, and what its level means."""
    return (*_describe_plans(info.plans), *_describe_looks(info))


def _describe_plans(plans: tuple[Plan, ...]) -> tuple[str, ...]:
    if not plans:
        return ()
    first = plans[0]
    seeds = ", ".join(str(seeds) for seeds in first.values["looks"])
    return (
        f"Recorded {describe_recorded(first.trials)}: metric "
        f"{clean(str(first.values['metric']))}, margin "
        f"{first.values['margin']:g} points, α {first.values['alpha']:g}, verdict computed at "
        f"{seeds} seeds (SHA-256 {clean(first.sha256)}). "
        + ("This was not changed afterwards." if len(plans) == 1 else _list_changes(plans)),
    )


def _list_changes(plans: tuple[Plan, ...]) -> str:
    changes = []
    for old, new in itertools.pairwise(plans):
        changed = [
            f"{name} from {old.values[name]} to {new.values[name]}"
            for name in _SPECIFIED
            if old.values[name] != new.values[name]
        ]
        changes.append(f"{clean(', '.join(changed))} {describe_recorded(new.trials)}")
    return f"Changed afterwards: {'; '.join(changes)}."


def _describe_looks(info: Looks) -> tuple[str, ...]:
    if not len(info.table):
        if info.planned < 2:
            return ()
        return ("The first look at the verdict is taken when its trials have ended.",)
    last = info.table.iloc[-1]
    p_value = format_p(float(last["p_value"]))
    ending = _ENDS.get(last["decision"], "Trials are added up to the next look.")
    return (
        f"Look {last['look']} of {info.planned}, at {last['seeds']} seeds: {last['verdict']} "
        f"({p_value}). {ending} It took {count(int(last['runs']), 'trial')}; all configurations "
        f"with all seeds would be {info.fixed_runs:,}.",
        "Each look compares p with a nominal level, so that all looks together have the error "
        "rate α (Lan and DeMets 1983; spent in proportion to the seeds). The verdict above is "
        "that of the last look: of its trials, at the confidence "
        f"{100 * (1 - last['alpha']):.5g} % (one less its nominal level). Ending a flat study "
        "early is not binding: the levels do not count on it.",
    )


def warn(info: Looks) -> tuple[str, ...]:
    """What was specified or changed when results could be seen already."""
    late = [plan for plan in info.plans if plan.trials]
    if not late:
        return ()
    return (
        "What the verdict is judged by was specified or changed when trials had begun: its error "
        "rate holds only if the results were not looked at.",
    )


def show(info: Looks) -> tuple[Table, ...]:
    """The looks, if there are any."""
    if not len(info.table):
        return ()
    caption = "Looks at the verdict."
    return (make_table(info.table, caption=caption, csv="looks", labels=_LABELS),)


TOPIC = Topic(
    name="looks",
    title="What was specified beforehand",
    compute=compute,
    csv={"looks": lambda info: info.table},
    text=describe,
    warnings=warn,
    tables=show,
)
