"""A sweep runs the trials of a study that are not done yet.

It is idempotent: run again it resumes the study, and sweeps that run at the same time share it.
"""

import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from mtdlab.config import StudySpec
from mtdlab.config.program_study import ProgramSpec
from mtdlab.files import has_leftovers
from mtdlab.store import FinishedRow, Look, SavedModel
from mtdlab.sweep.heartbeat import recorded_sweep
from mtdlab.sweep.model_folders import CHECKPOINTS
from mtdlab.sweep.open_study import open_study
from mtdlab.sweep.preflight import check_before_sweep, check_requirements
from mtdlab.sweep.same_inputs import check_same_inputs
from mtdlab.sweep.signals import stop_on_signals
from mtdlab.sweep.trials import Execution, Trials
from mtdlab.terminal import print_text

MODELS = Path("models")


@dataclass(frozen=True)
class SweepResult:
    """The state of a study after a sweep: trials by state, and the exit code.

    select_by  the score that ranks the trials; best  the first by it, None before there is one;
    look  the last look at the verdict, None without one; failures  the failed trials, by number;
    too_many_failed  whether they are `max_failed` or more, which ended the sweep;
    model  where the best trial's model was last saved, None where it is not recorded;
    keeps_models  whether one is saved: not by a program of the user.
    """

    study: str
    storage: str = field(repr=False)
    metric: str
    select_by: str
    best: FinishedRow | None
    counts: dict[str, int]
    ran: int
    seconds: float
    exit_code: int
    look: Look | None = None
    failures: tuple[FinishedRow, ...] = ()
    too_many_failed: bool = False
    model: SavedModel | None = None
    keeps_models: bool = True

    @property
    def planned(self) -> int:
        """The number of trials of the study."""
        return sum(self.counts.values())


def sweep(
    spec: StudySpec,
    url: str,
    *,
    models: Path = MODELS,
    jobs: int | None = None,
    jobs_per_gpu: int = 1,
    retry_failed: bool = False,
    max_failed: int | None = None,
    wait: bool = False,
    scheduler: str | None = None,
    command: str = "",
) -> SweepResult:
    """Run or resume a study with `jobs` worker processes; by default one per core, on a machine
    with GPUs `jobs_per_gpu` on each. With 0 jobs its trials are recorded and none is run.

    The best trial's model is kept in `models`, in a folder named after the study. As soon as the
    study has `max_failed` failed trials, the sweep stops, with exit code 1. With `wait` it ends
    only when no other process runs a trial of the study. With `scheduler` the workers are those of
    a dask cluster.

    Raises MtdlabError where the study was begun with other settings than the file's, or where
    an encoder or a text is missing, or is not that of its first sweep; StorageError where the
    database fails.
    """
    started = time.perf_counter()
    found = check_before_sweep(spec, url, models.absolute(), retry_failed=retry_failed)
    store = open_study(spec, url, command, notify=_warn)
    if retry_failed:
        store.retry_failed()
    if found is None and store.counts().get("WAITING"):
        # a complete study that was deleted through Optuna begins again
        found = check_requirements(spec, models.absolute())
    if found:
        _warn(check_same_inputs(spec.name, store, found))
    _remove_leftovers(models.absolute() / spec.name)
    with stop_on_signals() as stop, recorded_sweep(store, stop) as row:
        execution = Execution(jobs, jobs_per_gpu, max_failed, wait, scheduler)
        trials = Trials(spec, url, models.absolute(), store, stop, execution, row)
        with closing(trials):
            if jobs != 0:
                trials.run_all()
        if jobs != 0 and not stop.requested() and (models / CHECKPOINTS / spec.name).exists():
            # imported here, since it imports optuna
            from mtdlab.sweep.objective import objective_of

            objective_of(spec).restore(spec, url, models.absolute(), store, stop)
    counts = store.counts()
    code = 3 if counts.get("FAIL") else 0
    return SweepResult(
        study=spec.name,
        storage=url,
        metric=spec.metric,
        select_by=store.select_by(spec.metric),
        best=store.best_trial(),
        counts=counts,
        ran=trials.ran,
        seconds=time.perf_counter() - started,
        exit_code=stop.exit_code or (1 if trials.too_many_failed else code),
        look=store.last_look(),
        failures=tuple(store.failures()) if counts.get("FAIL") else (),
        too_many_failed=trials.too_many_failed,
        model=store.saved_model(),
        keeps_models=not isinstance(spec, ProgramSpec),
    )


def _warn(text: str) -> None:
    if text:
        print_text(f"mtdlab: {text}", file=sys.stderr)


def _remove_leftovers(model: Path) -> None:
    """Remove the temporary folders of processes that were killed while they wrote a model."""
    if has_leftovers(model):
        # imported here, since it imports torch
        from mtdlab.training.export import locked

        # it removes them when it has the lock
        with locked(model):
            pass
