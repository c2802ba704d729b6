"""The checks of a study file, of its sections and of the whole study: each yields its mistakes.

A metric that is a task besides the published ones, `metric: beir:FOLDER`, adds the task to
`trainer.tasks`, and where the task has dev data it selects checkpoints and ranks trials on these:
what selects is never what is reported.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from mtdlab.analysis.data.defaults import MOST_COMPARED
from mtdlab.analysis.data.metric import is_loss, is_negated, negated
from mtdlab.analysis.data.questions import QuestionError
from mtdlab.config.method_study import given_to
from mtdlab.config.nuisance import NUISANCE
from mtdlab.config.search import (
    STRATA,
    STRATA_FIX,
    STRATA_TOLERANCE,
    Choices,
    Dimension,
    Range,
    grid,
)
from mtdlab.config.source import OF_PROGRAM, Source
from mtdlab.config.study import StudySpec
from mtdlab.config.study_file import StudyFile, check_section, point_at, unknown_setting
from mtdlab.errors import nearest
from mtdlab.methods.registry import settings_class
from mtdlab.methods.user_modules import SPELLED, present_evaluator
from mtdlab.settings import Setting, TrainerSettings, first_error
from mtdlab.settings.limits import TRIALS
from mtdlab.settings.messages import describe_rule
from mtdlab.settings.roles import BASELINE
from mtdlab.settings.tasks import (
    BEIR,
    DEV,
    EVALUATOR,
    METRICS,
    external_tasks,
    is_external_score,
    needed,
    parse_tasks,
    score_name,
    task_of,
)
from mtdlab.user_code import UserModule

OWN = "write beir:FOLDER, mteb:TASK or evaluator:KEY for a metric of your own"


def add_metric_task(top: StudyFile) -> StudyFile:
    """The top level with the task of its metric, and its selection, where the file leaves it open.

    Unchanged where the metric is no external score, or reports dev data, which is a mistake.
    """
    metric = score_name(top.metric)
    if not is_external_score(metric) or metric.endswith(DEV):
        return top
    trainer: dict[str, Any] = dict(top.trainer)
    try:
        listed = _list_tasks(trainer)
        names = [task_of(score_name(task)) for task in external_tasks(listed)]
    except ValueError:
        # a mistake of trainer.tasks, which its own check reports
        return top
    is_own = task_of(metric) == EVALUATOR
    if task_of(metric) not in names:
        trainer["tasks"] = ",".join(filter(None, (listed, EVALUATOR if is_own else top.metric)))
    select_by, evaluator = score_name(top.select_by), present_evaluator()
    if metric.startswith(BEIR) or (is_own and evaluator is not None and evaluator.has_dev):
        if "select_on" not in top.search:
            trainer.setdefault("select_on", metric + DEV)
        if "select_by" not in top.model_fields_set:
            select_by = metric + DEV
    return top.model_copy(update={"metric": metric, "trainer": trainer, "select_by": select_by})


def check_direction(top: StudyFile, of_program: bool, source: Source) -> None:
    """Check that a stated direction is one that the scores can have."""
    if top.direction != "minimize" or not source.is_correct("metric", "select_by", "direction"):
        return
    if not of_program and task_of(top.metric) != EVALUATOR:
        message = f"higher is better of {top.metric}; only an evaluator's scores are minimised"
        source.add(("direction",), message)
    for name in filter(None, _ranking_scores(top, of_program)):
        if is_loss(top.metric) != is_loss(name):
            one, other = sorted((top.metric, name), key=is_loss)
            message = f"it holds for {other} and {one} alike, but {one} is no loss by its name"
            source.add(("direction",), f"{message}; rank by another score")


def _ranking_scores(top: StudyFile, of_program: bool) -> tuple[str | None, str | None]:
    """The scores of `select_by` and `select_on` that the file names and that have its direction."""

    def own(score: object) -> str | None:
        is_own = isinstance(score, str) and (of_program or task_of(score) == EVALUATOR)
        return str(score) if is_own else None

    by = top.select_by if "select_by" in top.model_fields_set else None
    return own(by), None if of_program else own(top.trainer.get("select_on"))


def name_negated(top: StudyFile, *, of_program: bool) -> StudyFile:
    """The top level with the names that scores have which are negated: all of a program's, and
    those of an evaluator that the file names."""
    if top.direction != "minimize":
        return top

    def name(score: str) -> str:
        return score if is_negated(score) else negated(score)

    select_by, select_on = _ranking_scores(top, of_program)
    changed: dict[str, Any] = {"metric": name(top.metric)}
    if select_by:
        changed["select_by"] = name(select_by)
    if not of_program:
        trainer = dict(top.trainer)
        if select_on:
            trainer["select_on"] = name(select_on)
        scores = [changed["metric"], *(name(score) for score in (select_by, select_on) if score)]
        lower = dict.fromkeys(score.removesuffix(DEV) for score in scores)
        tasks = [task for task in _list_tasks(trainer).split(",") if task.strip() != EVALUATOR]
        trainer["tasks"] = ",".join([*tasks, *lower])
        changed["trainer"] = trainer
    return top.model_copy(update=changed)


def with_evaluator(
    modules: tuple[UserModule, ...], trainer: Mapping[str, Any]
) -> tuple[UserModule, ...]:
    """The modules of a study and, where its tasks have one, the evaluator of this process."""
    evaluator = present_evaluator()
    used = EVALUATOR in map(task_of, external_tasks(_list_tasks(trainer)))
    return (*modules, evaluator) if evaluator and used else modules


def _list_tasks(trainer: Mapping[str, Any]) -> str:
    """The tasks of a trainer section, joined by commas."""
    given = trainer.get("tasks", "")
    return ",".join(map(str, given)) if isinstance(given, list) else str(given)


def check_top_level(top: StudyFile, source: Source) -> None:
    """Check the rules of keys at the top level, as far as the keys that they read are correct."""
    if source.is_correct("sampler", "trials", "select_by"):
        check_sampler(top, source)
        if top.sampler == "tpe" and top.select_by != "sts_dev" and not top.select_by.endswith(DEV):
            message = "tpe would fit its choices to the test split; use select_by: sts_dev"
            source.add(("sampler",), message)
    for key, name in (("metric", top.metric), ("select_by", top.select_by)):
        if source.is_correct(key) and is_external_score(name):
            if task_of(name) == EVALUATOR and present_evaluator() is None:
                source.add((key,), f"{name} needs a function; name it with --evaluator {SPELLED}")
            # dev data never are reported, and only they rank
            if key == "metric" and name.endswith(DEV):
                reported = score_name(name).removesuffix(DEV)
                source.add((key,), f"dev data select; report {reported}, on test data")
            elif key == "select_by" and not name.endswith(DEV):
                message = f"rank by sts_dev, or a score that ends in {DEV}"
                source.add((key,), f"{name} is what is reported; {message}")
        elif source.is_correct(key) and name not in METRICS:
            message = f"{name!r} is not known; {nearest(name, METRICS, OF_PROGRAM)}; or {OWN}"
            source.add((key,), message)


def check_sampler(top: StudyFile, source: Source) -> None:
    """Check that the number of trials goes with the sampler."""
    if top.sampler != "grid" and top.trials is None:
        source.add(("sampler",), f"{top.sampler} needs trials: how many configurations to draw")
    if top.sampler == "grid" and top.trials is not None:
        source.add(("trials",), "a grid has as many trials as points; leave it out")


def check_trainer(
    top: StudyFile, methods: tuple[str, ...], known: Mapping[str, Setting], source: Source
) -> None:
    """Check the keys and values of the section `trainer`, and the rules between them."""
    if "seed" in top.trainer:
        source.add(("trainer", "seed"), "a study takes its seeds from seeds: [0, 1, 2]")
    for name in top.trainer:
        if len(methods) > 1 and name not in known:
            source.collect([unknown_setting(source, ("trainer", name), known)])
    # what is searched may decide whether the fixed values go together
    interacting = {"method", "batch_size", STRATA, *(name for name in known if "queue" in name)}
    whole = interacting.isdisjoint(top.search)
    for method in methods:
        model = settings_class(method)
        given = given_to(model, top.trainer) if len(methods) > 1 else top.trainer
        try:
            if whole:
                model(**given)
            else:
                model.partial({**given, "method": method})
        except ValidationError as error:
            source.collect(point_at(source, ("trainer",), model, error))


def check_tasks(top: StudyFile, kind: type[TrainerSettings], source: Source) -> None:
    """Check that the tasks of metric and select_by are scored; both and the trainer are correct."""
    settings = kind.partial(given_to(kind, top.trainer))
    scored = [task_of(score_name(task)) for task in parse_tasks(settings.tasks)]
    for key, name in (("metric", top.metric), ("select_by", top.select_by)):
        if missing := [task for task in map(task_of, needed(name)) if task not in scored]:
            message = f"{name} needs tasks that trainer.tasks lacks: {', '.join(missing)}"
            source.add((key,), message)


OF_STUDY = ("evaluation", "tasks")
"""The settings that say what is scored: the same for the search and the baseline."""


def check_searched(name: str, top: StudyFile, known: Mapping[str, Setting], source: Source) -> None:
    """Check that a setting can be searched, whatever its values."""
    where = ("search", name)
    if name == "seed":
        source.add(where, "the seed is not searched; list it under seeds:")
    elif name == STRATA:
        check_strata(top, known, source)
    elif name not in known:
        source.collect([unknown_setting(source, where, known)])
    elif name == "preset":
        source.add(
            where, "is not searched, since it only fills what a file leaves open; use profiles"
        )
    elif name in OF_STUDY:
        message = "is not searched: what is compared is scored alike; write it under trainer"
        source.add(where, message)
    elif name in top.trainer:
        source.add(where, "also fixed under trainer; keep one of the two")


def check_strata(top: StudyFile, known: Mapping[str, Setting], source: Source) -> None:
    """Refuse strata of MTD where something else decides over the EMA decay or the queue size."""
    where = ("search", STRATA)
    if not isinstance(given := top.search[STRATA], dict):
        example = "{strata: [5, 15], per_stratum: 4}"
        source.add(where, f"{given!r}: write strata and per_stratum, as in {example}")
    if top.sampler != "grid":
        source.add(where, f"strata are points of a grid, {top.sampler} has none")
    for name in STRATA_FIX:
        if name not in known:
            source.add(where, f"the study's method has no {name}, so it has no MTD")
            return
        for section_name, given in (("search", top.search), ("trainer", top.trainer)):
            if name in given:
                message = f"also given by the strata of search.{STRATA}; keep one of the two"
                source.add((section_name, name), message)


def check_values(
    setting: Setting, dimension: Dimension, methods: Sequence[str], source: Source
) -> None:
    """Refuse the searched values that the setting cannot have."""
    if dimension.relative_to:
        return
    path = ("search", setting.name)
    edges = dimension.values if isinstance(dimension, Choices) else (dimension.low, dimension.high)
    if isinstance(dimension, Range) and not setting.is_number:
        source.add(path, "is no number; list its values instead")
        return
    models = [settings_class(method) for method in methods]
    for value in edges:
        try:
            for model in models:
                if setting.name in model.model_fields:
                    model.partial({setting.name: value})
        except ValidationError as error:
            source.add(path, describe_rule(error.errors()[0]))


def check_baseline(top: StudyFile, methods: Sequence[str], method: str, source: Source) -> None:
    """Check the section `baseline` of a method, beside the `methods` of the search."""
    given, kind = top.baseline or {}, settings_class(method)
    if not given:
        source.add((BASELINE,), "write what differs from trainer, as in {method: simcse}")
    if len(methods) > 1 and "method" not in given:
        source.add((BASELINE,), "name its method, which the search varies")
    if "seed" in given:
        source.add((BASELINE, "seed"), "it runs with the seeds of the search; take it out")
    for name in OF_STUDY:
        if name in given:
            source.add((BASELINE, name), "is that of the search; write it under trainer")
    if not source.is_correct(BASELINE):
        return
    values = given_to(kind, top.trainer) | given | {"method": method}
    source.try_read(lambda: check_section(source, (BASELINE,), kind, values))


READ_BY_TRIALS = (
    *("trainer", "search", "seeds", "sampler", "trials", "skip", "until"),
    *(BASELINE, NUISANCE),
)
"""The keys that decide which trials there are."""


def check_study(top: StudyFile, spec: StudySpec, source: Source) -> None:
    """Check the rules of the study before a trial is built. Raises ValueError without a grid."""
    selecting = spec.possible_values("select_on") if "select_on" in spec.known else ()
    on_test = {"test", "sts_average"}.intersection(selecting) and spec.select_by == "sts_dev"
    if spec.pruner != "none" and on_test and source.is_correct("pruner", "select_by"):
        # a pruner sees the scores of the pairs on which the checkpoint is chosen
        source.add(
            ("pruner",),
            "a pruner compares scores on the pairs that select_on names, here the test pairs; "
            "use select_on: dev, or rank by the test pairs too, with select_by: sts_test",
        )
    points = list(grid(spec.search, spec.skip)) if spec.sampler == "grid" else []
    trials = []
    if source.is_correct("skip"):
        if spec.sampler == "grid" and not points:
            source.add(("skip",), "leaves no point of the grid to run; take an entry out")
        configurations = (len(points) or spec.trials or 0) + (spec.baseline is not None)
        if (count := configurations * len(spec.seeds) + len(spec.nuisance_trials())) > TRIALS:
            source.add(
                ("until", "max_seeds") if spec.until else ("seeds",),
                f"{configurations:,} configurations with {len(spec.seeds):,} seeds each are "
                f"{count:,} trials; a study has at most {TRIALS:,}",
            )
            return
        for point in points:
            try:
                trials.append(spec.settings(spec.parameters_of(point), seed=0))
            except ValidationError as error:
                # the others break the same rule
                source.add(("search",), f"{point}: {first_error(error)}")
                break
        for trial in spec.nuisance_trials():
            try:
                spec.settings(trial.parameters or {}, 0, trial.role)
            except ValidationError as error:
                source.add((NUISANCE,), f"{trial.parameters}: {first_error(error)}")
                break
    for name, why in spec.without_effect().items():
        message = f"has no effect with {why}; take it out, or run {{{why}}} as the baseline"
        source.add(("search", name), message)
    if (beside := spec.baseline_settings()) is not None:
        same = {**beside.model_dump(), "seed": 0}
        if any(trial.model_dump() == same for trial in trials):
            message = "is a configuration of the search; give it another method or other settings"
            source.add((BASELINE,), message)
    if spec.questions and source.is_correct(*READ_BY_TRIALS, "names", "questions"):
        _check_questions(spec, source)
    if spec.until and source.is_correct(*READ_BY_TRIALS, "pruner", "questions"):
        _check_until(spec, source)
    if STRATA in top.search and source.is_correct(*READ_BY_TRIALS):
        for point, mtd in zip(points, (trial.mtd for trial in trials), strict=True):
            strata = top.search[STRATA]["strata"]
            if mtd is None or all(abs(mtd - stratum) > STRATA_TOLERANCE for stratum in strata):
                message = (
                    f"{point} has an MTD of {mtd}; strata need a constant EMA decay and the whole "
                    "queue"
                )
                source.add(("search", STRATA), message)
                break


def _check_questions(spec: StudySpec, source: Source) -> None:
    """Refuse questions that the configurations of a grid cannot answer."""
    rows = [*spec.configurations().values()]
    nuisance = () if spec.nuisance is None else spec.nuisance.values
    for place, question in enumerate(spec.questions if rows else ()):
        try:
            question.check(rows, nuisance)
        except QuestionError as error:
            source.add(("questions", place), f"{error}; change it, or take it out")


def _check_until(spec: StudySpec, source: Source) -> None:
    """Refuse `until` in a study whose verdict cannot be decided by more seeds, or is biased."""
    where = ("until",)
    if spec.sampler != "grid":
        source.add(where, f"needs sampler: grid; {spec.sampler} has no fixed levels")
    elif spec.pruner != "none":
        source.add(where, f"needs every trial; take pruner: {spec.pruner} out")
    elif not (planned := spec.planned_question()).asked.is_tested:
        source.add(where, f"{planned.asked.kind} is described, not tested; ask another question")
    elif (compared := planned.count_compared()) == 1:
        source.add(where, "needs two configurations or more to compare")
    elif compared > MOST_COMPARED:
        source.add(
            where,
            f"compares at most {MOST_COMPARED} configurations, not {compared:,}; vary fewer values",
        )
