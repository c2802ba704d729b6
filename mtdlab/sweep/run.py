"""A sweep brings a study to what its file says: as often and as often at once as one likes."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

from mtdlab.config import StudySpec
from mtdlab.errors import MtdlabError, StorageError
from mtdlab.store import FINISHED, Store, Watcher
from mtdlab.store.database import writing_engine
from mtdlab.sweep.finished import Ended
from mtdlab.sweep.optuna_study import Mirror
from mtdlab.sweep.progress import Display, Tally
from mtdlab.sweep.signals import Stop, exit_code, stop_on_signals

MODELS = Path("models")
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class SweepResult:
    """Where a study stands after a sweep: trials by state, and how the sweep ended."""

    study: str
    storage: str
    counts: dict[str, int]
    ran: int
    seconds: float
    exit_code: int

    @property
    def planned(self) -> int:
        """How many trials the study has in all."""
        return sum(self.counts.values())


def sweep(
    spec: StudySpec,
    url: str,
    *,
    models: Path = MODELS,
    jobs: int | None = None,
    jobs_per_gpu: int = 1,
    retry_failed: bool = False,
    command: str = "",
) -> SweepResult:
    """Run what is missing of a study, with `jobs` worker processes: by default one a core, on a
    machine with GPUs `jobs_per_gpu` on each.

    The best trial's model is kept in `models`, in a folder named after the study.

    Raises MtdlabError where the file asks another question than the study answers so far, or
    names an encoder or a text that is not there; StorageError where the database fails.
    """
    started = time.perf_counter()
    store = _open(spec, url, command)
    if retry_failed:
        store.retry_failed()
    ran, code = 0, 0
    if store.counts().get("WAITING"):
        with stop_on_signals() as stop:
            ran = _work(spec, url, models.absolute(), store, (jobs, jobs_per_gpu), stop)
            code = exit_code(stop) if stop.path.exists() else 0
    counts = store.counts()
    failed = 3 if counts.get("FAIL") else 0
    return SweepResult(spec.name, url, counts, ran, time.perf_counter() - started, code or failed)


def _open(spec: StudySpec, url: str, command: str) -> Store:
    # our tables first: a file that is no database of ours is refused before Optuna touches it
    writing_engine(url)
    mirror = Mirror(url, spec)
    store = Store(url, mirror.study_id)
    store.forget_deleted(spec.name, mirror.trial_ids)
    recorded = store.study()
    if recorded is None:
        store.write_study(spec.name, spec.metric, spec.identity(), spec.text, command)
    else:
        _refuse_another_question(spec, recorded.identity)
    if missing := store.add_units(spec.units()):
        raise MtdlabError(
            f"study {spec.name} holds {len(missing)} trials that the file no longer asks for "
            f"(such as seed {missing[0][1]}); put them back, or give the study another name"
        )
    store.write_study(spec.name, spec.metric, spec.identity(), spec.text, command)
    mirror.bring_into_step(store)
    return store


def _refuse_another_question(spec: StudySpec, recorded: dict[str, Any]) -> None:
    """A change that only adds trials is welcome; any other would mix two questions."""
    mine = spec.identity()
    recorded = {**recorded, "trainer": _completed(recorded["trainer"], mine["trainer"], spec)}
    differences = [
        f"{section}: was {was}, now {now}" for section, was, now in _differing(recorded, mine)
    ]
    if differences:
        raise MtdlabError(
            f"study {spec.name} was begun with another file ({'; '.join(differences)}); "
            "put that back, or give the study another name"
        )


def _completed(recorded: dict[str, Any], mine: dict[str, Any], spec: StudySpec) -> dict[str, Any]:
    """A recorded trainer section with the settings that methods have now.

    A setting that is younger than the study stood at its default. One that its method had then
    and lacks now could only have one value.
    """
    if "method" in spec.search:
        return recorded
    defaults = type(spec.fixed())().model_dump(mode="json")
    kept = {name: value for name, value in recorded.items() if name in defaults}
    return {name: defaults[name] for name in mine} | kept


def _differing(old: object, new: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differing(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield path, old, new


def _work(
    spec: StudySpec,
    url: str,
    models: Path,
    store: Store,
    wanted: tuple[int | None, int],
    stop: Stop,
) -> int:
    # torch takes seconds to import: a study that is complete answers without it
    from mtdlab.sweep.slots import default_jobs
    from mtdlab.sweep.worker import run_next
    from mtdlab.training.export import refuse_other_things
    from mtdlab.training.inputs import check_inputs

    refuse_other_things(models / spec.name)
    check_inputs(spec.fixed(), spec.augmentations(), spec.smallest_batch())
    counts = store.counts()
    jobs, jobs_per_gpu = wanted
    jobs = min(jobs or default_jobs(jobs_per_gpu), counts["WAITING"])
    finished = sum(counts.get(state, 0) for state in FINISHED)
    ran = 0
    with Display(Tally(sum(counts.values()), finished, jobs)) as display:
        with _watching(Watcher(url, store.study_id), display):
            while (waiting := store.counts().get("WAITING")) and not stop.path.exists():
                for trial in _trials(run_next, (spec, url, models, stop), jobs, waiting):
                    ran += 1
                    display.ended(trial)
                # what still waits may need parameters that another sweep is drawing right now
                time.sleep(POLL_SECONDS if waiting else 0)
        if stop.path.exists():
            display.say("stopped; run the same command to go on")
    return ran


def _trials(
    run_next: Callable[..., Ended | None],
    arguments: tuple[StudySpec, str, Path, Stop],
    jobs: int,
    count: int,
) -> Iterator[Ended]:
    """What `count` calls of `run_next` in `jobs` processes return, as they end."""
    from mtdlab.sweep.slots import threads_each

    with parallel_config("loky", inner_max_num_threads=threads_each(jobs)):
        workers = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        ended: Iterable[Ended | None] = workers(delayed(run_next)(*arguments) for _ in range(count))
        yield from (trial for trial in ended if trial is not None)


@contextmanager
def _watching(watcher: Watcher, display: Display) -> Iterator[None]:
    """Keep the display in step with the database, from a thread of its own."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(POLL_SECONDS):
            # a look that fails costs a picture, not a trial: the next one comes soon
            with suppress(StorageError):
                display.working(*watcher.look())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
