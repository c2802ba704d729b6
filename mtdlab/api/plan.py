"""`mtdlab.plan`: a study's configurations, the seeds that it needs, its looks, and its cost."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from mtdlab.api.given import Given, Overrides, StudySource, assign
from mtdlab.errors import MtdlabError, NothingToReport, StorageError, TrialError, one_line
from mtdlab.terminal import progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from mtdlab.analysis.inference.pairing import LevelScores
    from mtdlab.analysis.inference.power import BestNeed, Flatness, Need, Precision
    from mtdlab.analysis.inference.scatter import Scatter
    from mtdlab.analysis.measures import Floats
    from mtdlab.config import StudySpec
    from mtdlab.cost.estimate import Estimate

MAIN_SETTINGS = ("ema_decay", "queue_size", "batch_size", "initial_queue_size")
"""Settings that the table shows whether they are searched or not: those behind the MTD."""


@dataclass(frozen=True)
class Power:
    """What a study finds at its levels, and what finding an effect takes, in points.

    Attributes:
        effect: the peak or slope that has to be found.
        tested: the level at which the peak is highest, and how far above both ends it is there.
        planned: the share of studies with the planned seeds that find a peak (None with fewer than
            3 levels) and a slope.
        power: that of `needs` and `flat`.
        needs: of the levels of the design, then of other numbers of levels.
        flat: None where no score is called flat.
        items: how many evaluation items are counted, 0 for none.
        bases: what `errors`, `correlations` and `items` were taken from, as text.
    """

    effect: float
    tested: "Tested"
    planned: "Planned"
    power: float
    needs: "list[Need]"
    flat: "Flatness | None"
    items: int
    precision: "Precision"
    bases: dict[str, str]


@dataclass(frozen=True)
class BestPower:
    """What a study that compares configurations finds, and what a decision takes, in points.

    Attributes:
        compared: how many configurations, or methods at their levels of MTD.
        effect: by how much the best is above all others, which are alike.
        seeds, separated: the planned seeds, and the share of studies with them that separate it.
        power: that of `need`.
        items, precision, bases: as in `Power`.
    """

    compared: int
    effect: float
    seeds: int
    separated: float
    power: float
    need: "BestNeed"
    items: int
    precision: "Precision"
    bases: dict[str, str]


@dataclass(frozen=True)
class Tested:
    """A level of MTD, and the height of a peak there above both ends, in points."""

    mtd: float | None
    above_ends: float


@dataclass(frozen=True)
class Planned:
    """The share of studies with so many seeds that find a peak, and a slope."""

    seeds: int
    peak: float | None
    slope: float


@dataclass(frozen=True)
class Look:
    """The seeds of a look, and its significance level."""

    seeds: int
    nominal_level: float


@dataclass(frozen=True)
class Specification:
    """What the verdict is judged by, its SHA-256, and whether it was recorded and when.

    `trials_started`: how many trials had started when it was first recorded; None where it is not.
    """

    study: str
    metric: str
    margin: float
    alpha: float
    beyond_run: str
    looks: list[int]
    sha256: str
    recorded: bool
    before_trial_1: bool | None = None
    trials_started: int | None = None


@dataclass(frozen=True)
class Design:
    """A study's power (None where what it compares is not known), looks and specification."""

    power: Power | BestPower | None
    looks: list[Look]
    specification: Specification


@dataclass(frozen=True)
class NoEstimate:
    """Why a study's cost is not estimated, and the exit code of a sweep refused for it, else 0."""

    reason: str
    exit_code: int = 0


@dataclass(frozen=True)
class StudyPlan:
    """What a study will run, what it needs and what it costs.

    Attributes:
        trials: of the search and of the baseline; of a study with `until` at most.
        configurations: a row per configuration: mtd (steps), the settings behind it and the
            searched ones; no rows for a study whose sampler draws them.
        baseline: the settings that the file gives it; None without one.
        suggestion: a baseline that the study lacks, in a sentence; empty where it has one.
        design: power, looks and specification.
        warnings: what the configurations confound with MTD.
        cost: time, memory and disk; None where it was not measured.
    """

    study: str
    trials: int
    configurations: "pd.DataFrame"
    design: Design
    warnings: tuple[str, ...]
    cost: "Estimate | None"
    baseline: Mapping[str, Any] | None = None
    suggestion: str = ""


def plan(
    study: StudySource,
    *,
    storage: str | None = None,
    profile: str | None = None,
    overrides: Overrides | None = None,
    imports: Sequence[str] = (),
    evaluator: str | None = None,
    objective: str | None = None,
    effect: float = 2.0,
    sd: float | None = None,
    record: bool = True,
    measure: bool = True,
    jobs: int | None = None,
    jobs_per_gpu: int = 1,
) -> StudyPlan:
    """What a study will run, the seeds that it needs, and its cost, as `mtdlab plan`.

    Args:
        effect: points of the peak or slope, or of the best configuration above the others, that
            have to be found with 80 % power.
        sd: residual standard deviation of a run in points; by default that of the study's runs, or
            1.5.
        record: whether to record in the database what the verdict is judged by.
        measure: whether to time a few training steps on this machine.

    Raises:
        MtdlabError: as `run_study`, also where the steps to be timed cannot run.
    """
    import pandas as pd

    from mtdlab.config import MethodSpec
    from mtdlab.cost.estimate import estimate

    given = Given(study, profile, assign(overrides), imports, evaluator, objective, storage)
    spec = read_begun(given)
    rows = list_configurations(spec)
    return StudyPlan(
        spec.name,
        len(spec.planned_trials()),
        pd.DataFrame(rows),
        find_design(spec, storage, effect=effect, sd=sd, record=record),
        tuple(find_warnings(spec, rows)),
        None
        if spec.unknown_cost or not measure
        else estimate(MethodSpec.of(spec), jobs, jobs_per_gpu),
        spec.baseline,
        suggest_baseline(spec),
    )


def read_begun(given: Given) -> "StudySpec":
    """The study as its database has begun it, where it has. Raises MtdlabError for a mistake."""
    from mtdlab.store.urls import storage_url
    from mtdlab.trial.recorded_study import as_begun

    return as_begun(given.read(), storage_url(given.storage))


def find_ended(spec: "StudySpec", url: str) -> dict[tuple[str, int], str]:
    """The state of each trial that a sweep would not run, by configuration and seed."""
    from mtdlab.store.recorded import read_states
    from mtdlab.store.tables import FINISHED

    try:
        states = read_states(url, spec.name)
    except StorageError:
        return {}  # no database yet
    return {key: state for key, state in states.items() if state in FINISHED}


def list_configurations(spec: "StudySpec") -> list[dict[str, Any]]:
    """A row per configuration, by MTD: its main settings and those that are searched.

    A setting that the configuration's method lacks is None, and so is the MTD of a method without
    one. Empty for a sampled study, whose configurations are drawn while it runs.
    """
    names = [name for name in dict.fromkeys((*MAIN_SETTINGS, *spec.search)) if name in spec.known]
    rows = [
        {"mtd": mtd_value(each["mtd"])} | {name: each.get(name) for name in names}
        for each in spec.configurations().values()
    ]
    return sorted(rows, key=lambda row: (row["mtd"] is None, row["mtd"]))


def suggest_baseline(spec: "StudySpec") -> str:
    """A baseline without a queue, for a study without one whose methods all have a queue.

    Empty for another study, and for one that a program trains: its settings are its own.
    """
    from mtdlab.config import MethodSpec

    if spec.baseline or not (isinstance(spec, MethodSpec) and spec.always_has_queue):
        return ""
    return (
        "none: the study does not show what a queue is worth; to compare it with SimCSE, which has "
        "none, add to the file: baseline: {method: simcse}"
    )


def mtd_value(mtd: float | None) -> float | None:
    """An MTD as levels are told apart by: 14, not 14.000000000000002; None where not known."""
    from mtdlab.analysis.data.runs import MTD_DECIMALS

    if mtd is None or not math.isfinite(mtd):
        return None
    rounded = round(mtd, MTD_DECIMALS)
    return int(rounded) if rounded == int(rounded) else rounded


def find_warnings(spec: "StudySpec", rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the configurations, as from `list_configurations`, confound, and likely mistakes."""
    return warn_of_confounding(rows) + spec.warnings()


def warn_of_confounding(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the planned configurations, as from `list_configurations`, confound with MTD."""
    from mtdlab.analysis.measures.trace import PARTS
    from mtdlab.analysis.statistics.sufficiency import describe_confounding

    # a method without an average, or without a queue, confounds nothing
    traced = [row for row in rows if None not in (row["mtd"], *map(row.get, PARTS))]
    decays = [row["ema_decay"] for row in traced]
    ratios = [row["queue_size"] / row["batch_size"] for row in traced]
    text = describe_confounding(decays, ratios)
    return [text] if text else []


def find_design(
    spec: "StudySpec", storage: str | None, *, effect: float, sd: float | None, record: bool
) -> Design:
    """A study's design; its specification is recorded if asked to, which may raise StorageError."""
    from mtdlab.analysis.inference.looks import boundaries_at
    from mtdlab.config.study import plan_of, sha256_of
    from mtdlab.store.store import record_plan
    from mtdlab.store.urls import storage_url

    url, plan = storage_url(storage), plan_of(spec)
    digest = sha256_of(plan)
    nominal = boundaries_at(spec.looks, spec.alpha).nominal.tolist()
    power = _power(spec, url, effect, sd, nominal)
    started = record_plan(url, spec.name, plan, digest) if record else None
    is_before = None if started is None else started == 0
    looks = [Look(*look) for look in zip(spec.looks, nominal, strict=True)]
    return Design(
        power,
        looks,
        Specification(
            **plan, sha256=digest, recorded=record, before_trial_1=is_before, trials_started=started
        ),
    )


def _power(
    spec: "StudySpec", url: str, effect: float, sd: float | None, nominal: Sequence[float]
) -> Power | BestPower | None:
    """What a study finds at the levels of MTD within the run, and what 80 % power takes.

    Of a study that compares configurations, what it finds of these. None for a study whose levels
    are not known, or of which fewer than two take part, and for more than 30 configurations.
    `nominal`: significance level of each look.
    """
    from mtdlab.analysis.data.beyond_run import find_beyond
    from mtdlab.analysis.data.runs import MTD_DECIMALS
    from mtdlab.analysis.inference import power

    if compared := spec.count_compared():
        return _power_of_best(spec, url, compared, effect, sd, nominal)
    rows = list(spec.configurations().values())
    beyond = find_beyond(rows, spec.beyond_run)
    mtds = {row["mtd"] for row in rows if row["mtd"] is not None}
    levels = sorted(level for level in mtds if round(level, MTD_DECIMALS) not in beyond)
    if len(levels) < 2:
        return None
    distance, seeds = power.design_levels(levels), spec.looks[-1]
    scatter, bases = _find_scatter(spec, url, distance, sd)
    heights = power.peak_effects(distance, effect) + effect
    # the peak's top is in the middle of the range, where no level need be
    best = int(heights.argmax())
    return Power(
        effect,
        Tested(mtd_value(distance[best]), float(heights[best])),
        Planned(
            seeds,
            *power.find_power(distance, spec.looks, nominal, effect=effect, scatter=scatter),
        ),
        power.POWER,
        power.compute_needs(distance, effect=effect, scatter=scatter, alpha=spec.alpha),
        power.compute_flatness(
            distance, seeds, margin=spec.margin, scatter=scatter, alpha=nominal[-1]
        ),
        scatter.count,
        power.compute_precision(distance, seeds, scatter),
        bases,
    )


def _power_of_best(
    spec: "StudySpec",
    url: str,
    compared: int,
    effect: float,
    sd: float | None,
    nominal: Sequence[float],
) -> BestPower | None:
    import numpy as np

    from mtdlab.analysis.inference import power
    from mtdlab.analysis.inference.pairing import MOST_LEVELS

    if not 2 <= compared <= MOST_LEVELS:
        return None
    distance, looks = np.arange(1.0, compared + 1), spec.looks
    scatter, bases = _find_scatter(spec, url, distance, sd, ordered=False)
    separated = power.find_best_power(
        looks, nominal, count=compared, effect=effect, scatter=scatter
    )
    return BestPower(
        compared,
        effect,
        looks[-1],
        separated,
        power.POWER,
        power.compute_best_needs(
            compared, effect=effect, scatter=scatter, alpha=spec.alpha, margin=spec.margin
        ),
        scatter.count,
        power.compute_precision(distance, looks[-1], scatter),
        bases,
    )


def _find_scatter(
    spec: "StudySpec", url: str, distance: "Floats", sd: float | None, *, ordered: bool = True
) -> "tuple[Scatter, dict[str, str]]":
    """How seeds and items make differences scatter, and the basis of each, as text.

    From the study's runs where there are any; otherwise it is assumed. `ordered`: whether it is
    between levels of MTD, `distance`; else it is between as many configurations.
    """
    from mtdlab.analysis.inference import scatter

    count, bases = count_pairs(spec), dict.fromkeys(("errors", "correlations"), "assumed")
    if not ordered:
        bases["correlations"] = "none"
    found = scatter.assume_scatter(distance, sd, count, ordered=ordered)
    if count:
        bases["items"] = f"assumed: {scatter.ASSUMED_OF_ITEMS:g} over the root of their number"
    levels, runs = _recorded_scores(spec, url, ordered=ordered)
    alike = levels is not None and (ordered or len(levels.distance) == len(distance))
    if levels is not None and alike and levels.comparable:
        estimated, recorded = scatter.estimate_scatter(levels, sd), f"from {runs} recorded runs"
        bases |= {name: recorded for name, basis in bases.items() if basis == "assumed"}
        found = replace(found, errors=estimated.errors)
        if estimated.items is not None:
            found, bases["items"] = estimated, recorded
    if sd:
        bases["errors"] = "as given"
    not_counted = f"not counted: those of {spec.metric} are known when trials have recorded them"
    return found, {"items": not_counted} | bases


def _recorded_scores(
    spec: "StudySpec", url: str, *, ordered: bool
) -> "tuple[LevelScores | None, int]":
    """The scores that the study has recorded, None without any, and of how many complete runs."""
    from mtdlab.analysis.inference.best import best_scores
    from mtdlab.analysis.inference.pairing import level_scores
    from mtdlab.store.frames import load_frames

    try:
        frames = load_frames(spec.name, url, curves=False)
    except (StorageError, NothingToReport):
        return None, 0
    trials, settings, items = frames.trials, frames.settings, frames.items
    scores = best_scores(trials, settings, items)
    if ordered:
        scores = level_scores(trials, settings, items, beyond_run=spec.beyond_run)
    return scores, int((trials["state"] == "COMPLETE").sum())


def count_pairs(spec: "StudySpec") -> int:
    """The graded pairs of the study's metric; 0 where it is none of pairs, or they are not there.

    Those of other metrics are known once a trial has recorded them.
    """
    from mtdlab.config import MethodSpec
    from mtdlab.evaluation.pairs import load_pairs

    splits: Mapping[str, Literal["dev", "test"]] = {"sts_dev": "dev", "sts_test": "test"}
    sources = spec.possible_values("evaluation") if isinstance(spec, MethodSpec) else ()
    if len(sources) != 1 or spec.metric not in splits:
        return 0
    with suppress(MtdlabError):
        source = spec.places.find("evaluation", sources[0])
        return len(load_pairs(source, splits[spec.metric]))
    return 0


def find_costs(
    spec: "StudySpec",
    jobs: int | None,
    jobs_per_gpu: int,
    done: Collection[tuple[str, int]],
    before_timing: Callable[[], object] = lambda: None,
) -> "Estimate | NoEstimate":
    """The cost of the trials that are not done, or why it is not estimated.

    Args:
        before_timing: called before steps are timed, while other work would disturb nothing yet.
    """
    if spec.unknown_cost:
        return NoEstimate(spec.unknown_cost)
    with progress_bar(transient=True) as bar:
        task = bar.add_task("loading encoder and texts", total=None)

        def ready() -> None:
            before_timing()
            bar.update(task, description="timing training steps")

        try:
            from mtdlab.config import MethodSpec
            from mtdlab.cost.estimate import estimate

            return estimate(MethodSpec.of(spec), jobs, jobs_per_gpu, done=done, before_timing=ready)
        except MtdlabError as error:
            return NoEstimate(str(error), error.exit_code)
        except TrialError as error:
            return NoEstimate(str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # out of memory, a killed worker, whatever code of the user raises: the rest is shown
            return NoEstimate(one_line(error)[:200])
