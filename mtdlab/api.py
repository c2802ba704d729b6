"""What the commands do, as functions: `mtdlab.run_study`, `plan`, `train`, `evaluate`, `report`.

They return what the commands print, print nothing but progress on a terminal, and raise
`MtdlabError` for a mistake in what they are given. `mtdlab` imports them when they are first used.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import yaml

from analysis.frames import StudyFrames
from mtdlab.commands.options import find_code, import_named, models_option, written_options
from mtdlab.config import StudySpec, read_settings, read_study
from mtdlab.config.reader import parse_study
from mtdlab.errors import MtdlabError
from mtdlab.packaged import find_study_file
from mtdlab.store.urls import storage_url
from mtdlab.sweep.run import MODELS, SweepResult, sweep

if TYPE_CHECKING:
    import pandas as pd

    from analysis.report import MultiStudyReport, Report
    from mtdlab.cost.estimate import Estimate
    from mtdlab.evaluation.table import Report as Evaluation

Study = str | Path | Mapping[str, Any]
"""A study file, the name of a packaged study, or the contents of a study file, in which lists may
be ranges, tuples and arrays."""

Overrides = Mapping[str, Any]
"""Values in the place of the study file's, by key: {"trainer.steps": 50}."""


@dataclass(frozen=True)
class StudyPlan:
    """What a study will run, what it needs and what it costs.

    configurations  a row per configuration: mtd (steps), the settings behind it and the searched
                    ones; no rows for a study whose sampler draws them.
    design          power, looks and specification, as `mtdlab plan --json` has them.
    warnings        what the configurations confound with MTD.
    cost            time, memory and disk; None where it was not measured.
    """

    study: str
    trials: int
    configurations: "pd.DataFrame"
    design: Mapping[str, Any]
    warnings: tuple[str, ...]
    cost: "Estimate | None"


def run_study(
    study: Study,
    *,
    storage: str | None = None,
    profile: str | None = None,
    overrides: Overrides | None = None,
    imports: Sequence[str] = (),
    evaluator: str | None = None,
    objective: str | None = None,
    models: str | Path = MODELS,
    artifacts: str | None = None,
    jobs: int | None = None,
    jobs_per_gpu: int = 1,
    retry_failed: bool = False,
    max_failed: int | None = None,
    scheduler: str | None = None,
) -> SweepResult:
    """Run or resume a study, as `mtdlab sweep`; read it with `load_study` afterwards.

    storage  a database URL or a SQLite file; by default MTDLAB_STORAGE, then OPTUNA_STORAGE, then
             mtdlab.db in the working folder.
    profile  one of the file's profiles.
    imports  Python files or modules that define training methods.
    evaluator  MODULE:FUNCTION that scores encoders, as --evaluator.
    objective  MODULE:FUNCTION, a training program in place of mtdlab's trainer.
    models   folder in which the best trial's model is kept.
    artifacts  shared folder or fsspec URL for checkpoints and models, as --artifacts.
    jobs     worker processes; by default one a core, or `jobs_per_gpu` on each GPU.
    max_failed  the sweep ends, with exit code 1, when so many trials of the study have failed.
    scheduler  of a dask cluster whose workers run the trials, tcp://HOST:PORT.

    Raises MtdlabError where the study cannot be run, StorageError where the database fails.
    """
    return sweep(
        _read(study, profile, overrides, imports, evaluator, objective),
        storage_url(storage),
        models=Path(models),
        artifacts=artifacts,
        jobs=jobs,
        jobs_per_gpu=jobs_per_gpu,
        retry_failed=retry_failed,
        max_failed=max_failed,
        scheduler=scheduler,
        command=_command(
            study,
            profile=profile,
            set_=_assignments(overrides),
            import_=list(imports),
            evaluator=evaluator,
            objective=objective,
            storage=storage,
            models=models_option(models),
            artifacts=artifacts,
        ),
    )


def plan(
    study: Study,
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

    effect   points of the peak or slope that has to be found with 80 % power.
    sd       residual standard deviation of a run in points; by default that of the study's runs,
             or 1.5.
    record   whether to record in the database what the verdict is judged by.
    measure  whether to time a few training steps on this machine.

    Raises MtdlabError as `run_study`, also where the steps to be timed cannot run.
    """
    import pandas as pd

    from mtdlab.commands.plan import planned, warn_of_design
    from mtdlab.commands.plan_design import find_design
    from mtdlab.cost.estimate import estimate
    from mtdlab.sweep.preflight import setting_warnings
    from mtdlab.sweep.recorded_study import as_begun

    spec = _read(study, profile, overrides, imports, evaluator, objective)
    spec = as_begun(spec, storage_url(storage))
    rows = planned(spec)
    return StudyPlan(
        spec.name,
        len(spec.units()),
        pd.DataFrame(rows),
        find_design(spec, storage, effect=effect, sd=sd, record=record),
        (*warn_of_design(rows), *setting_warnings(spec)),
        None if objective or not measure else estimate(spec, jobs, jobs_per_gpu),
    )


def train(
    study: str | Path | None = None,
    *,
    profile: str | None = None,
    overrides: Overrides | None = None,
    imports: Sequence[str] = (),
    evaluator: str | None = None,
    out: str | Path | None = None,
) -> dict[str, Any]:
    """Train one encoder without a study, as `mtdlab train`; returns what that prints with --json.

    study  a study file, or a packaged study, whose trainer section to take; None: the defaults.
    out    a folder for the model, as SentenceTransformer opens it; None keeps nothing.

    Raises MtdlabError where settings or data are wrong, TrialError where training fails.
    """
    from mtdlab.commands.training_run import run_once

    file = None if study is None else find_study_file(Path(study))
    import_named(list(imports), file, evaluator)
    settings = read_settings(file, _assignments(overrides), profile)
    return run_once(settings, None if out is None else Path(out))


def evaluate(
    model: str = "builtin",
    *,
    tasks: str | None = None,
    data: str | Path | None = None,
    pooling: str | None = None,
    whiten: int | None = None,
    flow: int | None = None,
    pairs: str | Path | None = None,
    mteb: str | Path | None = None,
    evaluator: str | None = None,
) -> "Evaluation":
    """Score an encoder, as `mtdlab evaluate`: builtin, a folder, a Hugging Face name, vectors:FILE.

    The arguments are those of `mtdlab.evaluation.evaluate.evaluate`, which states what it raises.
    """
    from mtdlab.evaluation.evaluate import evaluate as run
    from mtdlab.evaluation.progress import progress

    with progress() as advance:
        return run(
            model,
            tasks=tasks,
            data=None if data is None else Path(data),
            pooling=pooling,
            whiten=whiten,
            flow=flow,
            pairs=None if pairs is None else Path(pairs),
            mteb=None if mteb is None else Path(mteb),
            evaluator=evaluator,
            advance=advance,
        )


@overload
def report(
    study: str | StudyFrames,
    *,
    storage: str | None = None,
    out: str | Path = "reports",
    name: str | None = None,
    generated: str | None = None,
) -> "Report": ...


@overload
def report(
    study: list[str | StudyFrames],
    *,
    storage: str | None = None,
    out: str | Path = "reports",
    name: str | None = None,
    generated: str | None = None,
    transfer: bool = False,
) -> "MultiStudyReport": ...


def report(
    study: str | StudyFrames | list[str | StudyFrames],
    *,
    storage: str | None = None,
    out: str | Path = "reports",
    name: str | None = None,
    generated: str | None = None,
    transfer: bool = False,
) -> "Report | MultiStudyReport":
    """Write the page of a study, or of a list of studies one over all, as `mtdlab report`.

    study      names in the database, or what `load_study` or `analysis.read_run_table` returned.
    name       the folder of the page in `out`; by default the names joined by +.
    generated  when it is made, as printed; by default now. The same text gives the same bytes.
    transfer   of a list: compare the answer of its first study with the others'.

    Raises NothingToReport for a study that is missing, OSError where `out` cannot be written.
    """
    from analysis.report import write_multi_study, write_report
    from mtdlab import __version__
    from mtdlab.store import load_study

    several = study if isinstance(study, list) else [study]
    frames = [load_study(each, storage) if isinstance(each, str) else each for each in several]
    folder = name or "+".join(each.name for each in frames)
    made = generated or f"{datetime.now(UTC):%Y-%m-%d %H:%M UTC}"
    if isinstance(study, list):
        return write_multi_study(
            frames,
            Path(out),
            name=folder,
            generated=made,
            version=__version__,
            transfer=transfer,
        )
    return write_report(frames[0], Path(out) / folder, generated=made, version=__version__)


def _read(
    study: Study,
    profile: str | None,
    overrides: Overrides | None,
    imports: Sequence[str],
    evaluator: str | None,
    objective: str | None,
) -> StudySpec:
    """The checked study. Raises MtdlabError for a mistake in it."""
    if isinstance(study, Mapping):
        if profile or overrides:
            raise MtdlabError("a study given as values takes no profile or overrides; change them")
        text = _written(study)
        modules, program = find_code(list(imports), evaluator, objective)
        return parse_study("study", text, modules, program=program)
    file = find_study_file(Path(study))
    code = find_code(list(imports), evaluator, objective, file)
    return read_study(file, _assignments(overrides), profile, *code)


def _assignments(overrides: Overrides | None) -> list[str]:
    """Overrides as --set takes them; JSON values are YAML."""
    plain = {key: _plain(value, key) for key, value in (overrides or {}).items()}
    return [f"{key}={json.dumps(value)}" for key, value in plain.items()]


def _written(study: Mapping[str, Any]) -> str:
    """A study given as values, as the text of a study file."""
    return yaml.safe_dump(_plain(study, "study"), sort_keys=False, allow_unicode=True)


def _plain(value: Any, name: str) -> Any:
    """A value as a study file can hold it: ranges, tuples and arrays are lists, a path is text.

    Raises MtdlabError for one that it cannot hold. name  what the error calls it.
    """
    if isinstance(value, Mapping):
        return {str(key): _plain(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(each, name) for each in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        # arrays and their scalars, of numpy and of others
        return value.tolist()
    if value is None or isinstance(value, str | int | float):
        return value
    raise MtdlabError(
        f"{name}: a study file cannot hold {value!r} ({type(value).__name__}); give text, a "
        "number, true or false, a list, or a mapping of these"
    )


def _command(study: Study, **options: str | list[str] | None) -> str:
    """The command that resumes it, recorded with the study; none for a study given as values."""
    if isinstance(study, Mapping):
        return ""
    return shlex.join(["mtdlab", "sweep", str(study), *written_options(**options)])
