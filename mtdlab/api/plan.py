"""`mtdlab.plan`: a study's configurations, the seeds that it needs, its looks, and its cost."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtdlab.analysis.data.defaults import MARGIN
from mtdlab.analysis.data.metric import as_read, is_in_points
from mtdlab.api.given import Given, Overrides, StudySource, assign
from mtdlab.errors import MtdlabError, NothingToReport, StorageError, describe, naming_missing
from mtdlab.terminal import begin_phase, progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from mtdlab.analysis.inference.pairing import LevelScores
    from mtdlab.analysis.inference.power import Precision, Target
    from mtdlab.analysis.inference.scatter import Scatter
    from mtdlab.analysis.measures import Floats
    from mtdlab.config.study import StudySpec
    from mtdlab.cost.estimate import CostEstimate

EFFECT = 2.0
"""The points of the peak, slope or lead that a study is to find, unless other ones are stated."""


@dataclass(frozen=True)
class Power:
    """What a study shows with its planned seeds, what showing it takes, and what both assume.

    Attributes:
        seeds: the planned ones.
        power: that of `Target.needed`.
        peak_mtd, peak_points: the level of the design at which a peak is highest, and how far above
            both ends it is there; None for a study that compares configurations.
        items: how many evaluation items are counted, 0 for none.
        bases: what `errors`, `correlations` and `items` were taken from, as text.
    """

    seeds: int
    power: float
    targets: "list[Target]"
    peak_mtd: float | None
    peak_points: float | None
    items: int
    precision: "Precision"
    bases: dict[str, str]


@dataclass(frozen=True)
class Look:
    """The seeds of a look, and its significance level."""

    seeds: int
    nominal_level: float


@dataclass(frozen=True)
class Specification:
    """What the verdict is judged by, and its SHA-256.

    `trials_started`: how many trials had started when it was first recorded; None where it is not.
    `questions`: what the study asks, as a study file says it; where it `is_declared` by the file.
    `named`: the configurations that these call by a name, each by its name.
    """

    study: str
    metric: str
    margin: float
    alpha: float
    beyond_run: str
    looks: list[int]
    sha256: str
    trials_started: int | None
    questions: Sequence[Mapping[str, Any]]
    is_declared: bool
    named: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Design:
    """A study's power (None where what it compares is not known), looks and specification."""

    power: Power | None
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
        warnings: what the configurations confound with MTD, and what is told of texts and pairs.
        cost: time, memory and disk of the trials that are left; None where it was not measured.
    """

    study: str
    trials: int
    configurations: "pd.DataFrame"
    design: Design
    warnings: tuple[str, ...]
    cost: "CostEstimate | None"
    baseline: Mapping[str, Any] | None = None
    suggestion: str = ""


@naming_missing()
def plan(
    study: StudySource,
    *,
    storage: str | Path | None = None,
    profile: str | None = None,
    overrides: Overrides | None = None,
    imports: Sequence[str] = (),
    evaluator: str | None = None,
    objective: str | None = None,
    effect: float | None = None,
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
        record: whether to record in the database what the verdict is judged by, once the steps were
            timed.
        measure: whether to time a few training steps on this machine.

    Raises:
        MtdlabError: as `run_study`, also where the steps to be timed cannot run.
    """
    import pandas as pd

    from mtdlab.store.urls import storage_url

    given = Given(study, profile, assign(overrides), imports, evaluator, objective, storage)
    spec = read_begun(given)
    rows, planned, url = list_configurations(spec), spec.planned_trials(), storage_url(storage)
    design = find_design(spec, url, effect=effect, sd=sd)
    ended, cost = find_ended(spec, url), None
    left = any(trial.key not in ended for trial in planned)
    if measure and not spec.unknown_cost and left:
        cost = _estimate(spec, jobs, jobs_per_gpu, ended)
    if record:
        design = record_design(design, spec, url)
    return StudyPlan(
        spec.name,
        len(planned),
        pd.DataFrame(rows),
        design,
        (*warn_of_confounding(rows), *spec.warnings(), *(find_data_warnings(spec) if left else ())),
        cost,
        spec.baseline,
        suggest_baseline(spec),
    )


def read_begun(given: Given) -> "StudySpec":
    """The study as its database has begun it. Raises MtdlabError where a sweep would refuse it."""
    from mtdlab.store.urls import storage_url
    from mtdlab.trial.recorded_study import refuse_other_file, with_recorded_values

    url = storage_url(given.storage)
    spec = with_recorded_values(given.read(), url)
    refuse_other_file(spec, url, given.invocation())
    return spec


def find_ended(spec: "StudySpec", url: str) -> dict[tuple[str, int], str]:
    """The state of each trial that a sweep would not run, by configuration and seed."""
    from mtdlab.store.recorded import read_planned
    from mtdlab.store.tables import FINISHED

    try:
        trials = read_planned(url, spec.name)
    except StorageError:
        return {}  # no database yet
    return {key: row.state for key, row in trials.items() if row.state in FINISHED}


def list_configurations(spec: "StudySpec") -> list[dict[str, Any]]:
    """A row per configuration, by MTD: the settings behind the MTD and those that are searched.

    Its name comes first where the file names configurations. A setting that its method lacks is
    None, and so is the MTD of a method without one. Empty for a sampled study, whose configurations
    are drawn while it runs.
    """
    from mtdlab.analysis.data.questions import ANY
    from mtdlab.analysis.data.runs import mtd_value
    from mtdlab.analysis.measures.trace import NOTATION

    names = [name for name in dict.fromkeys((*NOTATION, *spec.search)) if name in spec.known]
    rows = [
        ({ANY: each[ANY]} if spec.names else {})
        | {"mtd": mtd_value(each["mtd"])}
        | {name: each.get(name) for name in names}
        for each in spec.configurations().values()
    ]
    return sorted(rows, key=lambda row: (row["mtd"] is None, row["mtd"]))


def suggest_baseline(spec: "StudySpec") -> str:
    """A baseline without a queue, for a study without one whose methods all have a queue.

    Empty for another study, and for one that a program trains: its settings are its own.
    """
    from mtdlab.config.method_study import MethodSpec

    if spec.baseline or not (isinstance(spec, MethodSpec) and spec.always_has_queue):
        return ""
    return (
        "none: the study does not show what a queue is worth; to compare it with SimCSE, which has "
        "none, add to the file: baseline: {method: simcse}"
    )


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


def find_data_warnings(spec: "StudySpec") -> list[str]:
    """What is told of a study's texts and pairs, which are read for it, or why they cannot be."""
    from mtdlab.training.present import data_warnings

    begin_phase("reading the texts")
    return data_warnings(spec)


def find_design(spec: "StudySpec", url: str, *, effect: float | None, sd: float | None) -> Design:
    """A study's design, with its specification as one that is not recorded."""
    from mtdlab.analysis.inference.looks import boundaries_at
    from mtdlab.config.study import plan_of, sha256_of

    plan = plan_of(spec)
    nominal = boundaries_at(spec.looks, spec.alpha).nominal.tolist()
    # in a unit of its own, as many margins as 2 points are
    effect = effect or (EFFECT if is_in_points(spec.metric) else EFFECT / MARGIN * spec.margin)
    power = _power(spec, url, effect, sd, nominal)
    looks = [Look(*look) for look in zip(spec.looks, nominal, strict=True)]
    asked = plan.get("questions") or [spec.planned_question().asked.write()]
    specified = Specification(
        **plan | {"questions": asked},
        is_declared="questions" in plan,
        sha256=sha256_of(plan),
        trials_started=None,
    )
    return Design(power, looks, specified)


def record_design(design: Design, spec: "StudySpec", url: str) -> Design:
    """The design with its specification recorded. Raises StorageError."""
    from mtdlab.config.study import plan_of
    from mtdlab.store.store import record_plan

    specified = design.specification
    started = record_plan(url, spec.name, plan_of(spec), specified.sha256)
    return replace(design, specification=replace(specified, trials_started=started))


def _power(
    spec: "StudySpec", url: str, effect: float, sd: float | None, nominal: Sequence[float]
) -> Power | None:
    """What a study shows of its configurations, or of its levels of MTD within the run.

    None for a study of which these are not known, with fewer than two of them, for more than 30
    configurations, and where scores have a unit of their own and nothing tells how they scatter.
    `nominal`: significance level of each look.
    """
    from mtdlab.analysis.data.runs import mtd_value
    from mtdlab.analysis.inference import power
    from mtdlab.analysis.inference.pairing import MOST_LEVELS
    from mtdlab.analysis.questions.study import kind_of

    planned = spec.planned_question()
    design = kind_of(planned.asked).plan(planned)
    if design is None or len(design.distance) < 2:
        return None
    if not design.ordered and len(design.distance) > MOST_LEVELS:
        return None
    scatter, bases = _find_scatter(spec, url, design.distance, sd, ordered=design.ordered)
    if bases["errors"] == "assumed" and not is_in_points(spec.metric):
        return None
    heights = power.peak_effects(design.distance, effect) + effect
    # the peak's top is in the middle of the range, where no level need be
    top = int(heights.argmax())
    return Power(
        seeds=spec.looks[-1],
        power=power.POWER,
        targets=power.compute_targets(
            design,
            spec.looks,
            nominal,
            effect=effect,
            margin=spec.margin,
            scatter=scatter,
            alpha=spec.alpha,
        ),
        peak_mtd=mtd_value(design.distance[top]) if design.ordered else None,
        peak_points=float(heights[top]) if design.ordered else None,
        items=scatter.count,
        precision=power.compute_precision(design.distance, spec.looks[-1], scatter),
        bases=bases,
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
    if levels is not None and levels.comparable:
        estimated, recorded = scatter.estimate_scatter(levels, sd), f"from {runs} recorded runs"
        bases |= {name: recorded for name, basis in bases.items() if basis == "assumed"}
        found = replace(found, errors=estimated.errors)
        # errors of configurations have one variance, whichever have run; items have effects on each
        if estimated.items is not None:
            if ordered or len(levels.distance) == len(distance):
                found, bases["items"] = estimated, recorded
        elif levels.items:
            assumed = bases.get("items", "not counted")
            bases["items"] = f"{assumed}; in {runs} recorded runs the scatter of seeds hides theirs"
    if sd:
        bases["errors"] = "as given"
    score = as_read(spec.metric)
    not_counted = f"not counted: those of {score} are known when trials have recorded them"
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
    trials, settings, items = frames.trials, frames.compared, frames.items
    if ordered:
        scores = level_scores(trials, settings, items, beyond_run=spec.beyond_run)
    else:
        scores = best_scores(trials, settings, items)
    return scores, int((trials["state"] == "COMPLETE").sum())


def count_pairs(spec: "StudySpec") -> int:
    """The graded pairs of the study's metric; 0 where it is none of pairs, or they are not there.

    Those of other metrics are known once a trial has recorded them.
    """
    from mtdlab.config.method_study import MethodSpec
    from mtdlab.evaluation.pairs import load_scored
    from mtdlab.settings.tasks import PAIR_SCORES

    sources = spec.possible_values("evaluation") if isinstance(spec, MethodSpec) else ()
    if len(sources) != 1 or spec.metric not in PAIR_SCORES:
        return 0
    with suppress(MtdlabError):
        return len(load_scored(spec.metric, spec.places.find("evaluation", sources[0])))
    return 0


@naming_missing()
def _estimate(
    spec: "StudySpec", jobs: int | None, jobs_per_gpu: int, done: Collection[tuple[str, int]]
) -> "CostEstimate":
    """The cost of the trials that are not done. Raises MtdlabError as `check_study` at once."""
    from mtdlab.config.method_study import MethodSpec
    from mtdlab.training.present import check_study

    check_study(spec)
    begin_phase("importing the packages that train, and timing steps")
    from mtdlab.cost.estimate import estimate

    return estimate(MethodSpec.of(spec), jobs, jobs_per_gpu, done=done)


def find_costs(
    spec: "StudySpec", jobs: int | None, jobs_per_gpu: int, done: Collection[tuple[str, int]]
) -> "CostEstimate | NoEstimate":
    """The cost of the trials that are not done, or why it is not estimated."""
    if spec.unknown_cost:
        return NoEstimate(spec.unknown_cost)
    with progress_bar(transient=True) as bar:
        bar.add_task("timing training steps", total=None)
        try:
            return _estimate(spec, jobs, jobs_per_gpu, done)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # out of memory, a killed worker, whatever code of the user raises: the rest is shown
            code = error.exit_code if isinstance(error, MtdlabError) else 0
            return NoEstimate(describe(error), code)
