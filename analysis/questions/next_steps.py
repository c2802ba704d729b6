"""What to do next with a study that is over, with the command for it and what it costs."""

import itertools
from dataclasses import dataclass

import numpy as np

from mtdlab.analysis.data.defaults import CONFIRMATION_SEEDS
from mtdlab.analysis.data.durations import format_count, format_seconds
from mtdlab.analysis.data.frames import NuisanceTrials, StudyFrames
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.analysis.data.runs import completed_runs, varied_settings
from mtdlab.analysis.inference.best import number_configurations
from mtdlab.analysis.inference.power import MOST_SEEDS, Needed
from mtdlab.analysis.questions.results import StudyResults
from mtdlab.analysis.questions.wording import clean
from mtdlab.analysis.statistics.nuisance import compare_nuisance_values

MOST_COMMAND = 2_000
_MOST_RUN_AGAIN = 20
_MOST_ADVISED = 30
"""The most seeds in all that are advised: where more would decide, another design does earlier."""


@dataclass(frozen=True)
class NextStep:
    """The next step as a sentence, and the command for it, or empty."""

    text: str
    command: str = ""


def step(text: str, command: str = "") -> NextStep:
    """The next step with its command; the sentence ends with a colon where a command follows."""
    return NextStep(f"{text}{':' if command else '.'}", clean(command, most=MOST_COMMAND))


def command_on(study: StudyFrames, name: str, *arguments: str, **options: str) -> str:
    """A command on the study, in the database of its own one; an option may be without a value."""
    values = {"storage": study.invocation.value("storage"), **options}
    given = {option: (value,) for option, value in values.items() if value}
    return str(Invocation(name, (study.name, *arguments), given))


def confirm_command(study: StudyFrames) -> str:
    """The command that measures two configurations with fresh seeds; empty without a sweep."""
    if study.invocation.command != "sweep":
        return ""
    objective = study.invocation.value("objective") or study.program
    return command_on(study, "confirm", objective=objective)


def more_seeds_command(study: StudyFrames, seeds: int) -> str:
    """The sweep with so many seeds in all: those that were run, then the lowest unused ones.

    The command is empty for a list longer than a line, and for a study that no sweep ran.
    """
    used = sorted({int(seed) for seed in study.trials["seed"]})
    unused = (seed for seed in itertools.count() if seed not in used)
    wanted = [*used, *itertools.islice(unused, max(seeds - len(used), 0))]
    if study.invocation.command != "sweep" or len(wanted) > 100:
        return ""
    return str(study.invocation.adding("set", f"seeds=[{', '.join(map(str, wanted))}]"))


def describe_time(study: StudyFrames, trials: int) -> str:
    """The number of trials and, where times were recorded, their time at the mean so far."""
    seconds = float(completed_runs(study.trials)["wall_seconds"].astype("float64").mean())
    amount = format_count(trials, "trial")
    if not np.isfinite(seconds):
        return amount
    return f"{amount}, about {format_seconds(trials * seconds)} of computing"


def new_seeds(study: StudyFrames) -> str:
    """The words for new seeds of two configurations, with their trials and time."""
    time = describe_time(study, 2 * CONFIRMATION_SEEDS)
    return f"with {CONFIRMATION_SEEDS} new seeds ({time})"


def extend_range(nuisance: NuisanceTrials | None) -> NextStep | None:
    """The step of a study that chose the same end of a range for each configuration; else None."""
    if nuisance is None or not len(nuisance.trials):
        return None
    table = compare_nuisance_values(nuisance)
    chosen = table[table["chosen"]]
    numbers = table[[*nuisance.names]].select_dtypes("number")
    for name in [str(name) for name in numbers if numbers[name].nunique() > 1]:
        ends = {"lowest": ("lower", table[name].min()), "highest": ("higher", table[name].max())}
        for end, (beyond, value) in ends.items():
            if len(chosen) > 1 and (chosen[name] == value).all():
                text = f"the {end} one tried, {value:g}, was chosen in all {len(chosen):,} choices"
                return step(f"Try {beyond} values of {clean(name)}: {text}")
    return None


def run_more_seeds(
    results: StudyResults, need: Needed | None, *, wider: str, is_paired: bool
) -> NextStep:
    """The step of an open question: more seeds, or what decides it where these do not.

    Args:
        need: what deciding it takes; None where that is not known.
        wider: what may decide it where no number of seeds does.
        is_paired: whether the configurations have seeds in common.
    """
    study, runs = results.study, results.runs
    used, names = runs["seed"].nunique(), varied_settings(runs, study.compared)
    group = number_configurations(runs, names)
    configurations = max(group.nunique(), 1)

    def describe_left(seeds: int) -> str:
        missing = used * configurations - len({*zip(group, runs["seed"], strict=True)})
        each = configurations + (study.baseline is not None)
        return describe_time(study, max(seeds - used, 0) * each + missing)

    if need and not need.seeds:
        if need.items:
            wider = f"{wider}, or use at least {need.items:,} evaluation items"
        return step(
            f"{wider}: if all is as estimated, more than {MOST_SEEDS} seeds would be needed to "
            "decide here"
        )
    # as estimated, the seeds so far may have been enough
    if used > 1 and not need and not is_paired:
        return step(
            f"Run the {format_count(configurations, 'configuration')} with the same seeds, at "
            "least 3: differences are paired by seed"
        )
    if study.table and configurations > _MOST_RUN_AGAIN and not need:
        return step("Run the few best configurations again, with at least 3 new seeds each")
    if need and need.seeds and need.seeds > _MOST_ADVISED:
        time = describe_left(need.seeds)
        return step(f"{wider}: as estimated, {need.seeds} seeds would decide here ({time})")
    wanted = max(need.seeds or 0, used + 1) if need else max(2 * used, 3)
    text = f"More seeds narrow the confidence intervals; {wanted} in all"
    if need:
        text = f"Run {wanted} seeds in all, {wanted - used} more, for a verdict with 80 % power"
    time = describe_left(wanted)
    if study.table:
        time += f" of {format_count(configurations, 'configuration')}"
    if len(study.looks):
        # its seeds are fixed with its looks
        return step(f"{text} ({time}), in a new study, since the looks of this one are over")
    return step(f"{text} ({time})", more_seeds_command(study, wanted))
