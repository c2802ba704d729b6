"""What a study costs on this machine: time, memory and disk, before it runs.

A few real steps of each kind are timed in as many processes, with as many threads, as the sweep
would start; the rest is counting.
"""

import heapq
import itertools
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna
from joblib import Parallel, delayed, parallel_config

from mtdlab.config import StudySpec, TrainerSettings
from mtdlab.cost.measure import Measured, measure, peak_memory
from mtdlab.cost.sample import Sample, take_sample
from mtdlab.cost.step_kinds import kind_of
from mtdlab.errors import MtdlabError
from mtdlab.sweep.samplers import distributions, suggest
from mtdlab.sweep.slots import default_jobs, threads_each
from mtdlab.training.state import EVALUATED

SECONDS = 6.0
"""For the measurement, after the processes have started."""
DRAWN = 30
"""Settings drawn to stand for those of a study that samples."""
MEASURED = 4
"""Columns of a training curve beside the evaluations': the loss, and what a method records."""
EMPTY_DATABASE, TRIAL_ROWS, EVALUATION_ROW = 160_000, 6_000, 40
"""Bytes of a database without trials, of a trial's rows beside its curves, of an evaluation's."""
TOKENIZER = 1_000_000
"""Bytes of a saved model beside its weights."""
LOADING = (
    "encoder",
    "pooling",
    "corpus",
    "evaluation",
    "tasks",
    "max_length",
    "dropout",
    "device",
    "precision",
)
"""Settings by which a worker loads: with others it loads again."""


@dataclass(frozen=True)
class Estimate:
    """A study's cost. Seconds and bytes.

    trial            of the shortest and of the longest trial
    start            before the first step of the first trial
    memory           of all workers and the process that started them, at most
    kinds, measured  kinds of step in the study, and how many of them were timed as they are
    """

    trials: int
    workers: int
    threads: int
    seconds: float
    trial: tuple[float, float]
    start: float
    memory: int
    worker_memory: int
    database: int
    model: int
    kinds: int
    measured: int


def estimate(
    spec: StudySpec, jobs: int | None = None, jobs_per_gpu: int = 1, seconds: float = SECONDS
) -> Estimate:
    """Measure and count, for as many workers as a sweep would start.

    Raises MtdlabError where something that the study names is not there.
    """
    trials = trials_of(spec)
    kinds = list({kind_of(each): each for each in trials}.values())
    count = len(spec.units())
    jobs = min(jobs or default_jobs(jobs_per_gpu), count)
    with tempfile.TemporaryDirectory() as folder:
        sample = take_sample(trials[0], Path(folder))
        asked = time.time()
        with parallel_config("loky", inner_max_num_threads=threads_each(jobs)):
            seen: list[Measured] = Parallel(n_jobs=jobs)(
                delayed(measure)(kinds, sample, seconds) for _ in range(jobs)
            )
    worker = _mean([each.memory + _checkpoints(trials, each.weights) for each in seen])
    clock = _Clock(trials, sample, seen, imports=_mean([each.began - asked for each in seen]))
    return Estimate(
        trials=count,
        workers=jobs,
        threads=threads_each(jobs),
        seconds=clock.whole(count, jobs),
        trial=(min(clock.trials), max(clock.trials)),
        start=clock.start,
        memory=int(jobs * worker) + peak_memory(),
        worker_memory=int(worker),
        database=EMPTY_DATABASE
        + sum(database_bytes(each) for each in itertools.islice(itertools.cycle(trials), count)),
        model=_checkpoints(trials, seen[0].weights) // 2 + TOKENIZER,
        kinds=len(kinds),
        measured=seen[0].direct,
    )


def trials_of(spec: StudySpec) -> list[TrainerSettings]:
    """Every trial's settings, or some that a sampled study might draw.

    Raises MtdlabError where none that is drawn can be trained.
    """
    if spec.sampler == "grid":
        return [spec.settings(unit.parameters or {}, unit.seed) for unit in spec.units()]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    found = []
    for _ in range(DRAWN):
        parameters = suggest(study.ask(), distributions(spec))
        try:
            found.append(spec.settings(parameters, spec.seeds[0]))
        except ValueError:
            continue
    if not found:
        raise MtdlabError(f"none of {DRAWN} settings drawn can be trained")
    return found


class _Clock:
    """How long things take, from what the workers saw on average."""

    def __init__(
        self, trials: list[TrainerSettings], sample: Sample, seen: list[Measured], imports: float
    ) -> None:
        kinds = dict.fromkeys(map(kind_of, trials))
        means = np.mean([each.steps for each in seen], axis=0)
        self.steps = dict(zip(kinds, map(float, means), strict=True))
        self.token = {name: _mean([each.token[name] for each in seen]) for name in seen[0].token}
        self.sample, self.settings = sample, trials
        self.trials = [self._trial(each) for each in trials]
        # a worker opens what the sweep has opened before it, and scores the encoder as it is
        first = self.token[trials[0].encoder]
        self.loading = sample.load + self._looks(first, sample.dev + sample.test, 2)
        self.loading += first * sample.suite + sample.score
        self.start = 2 * imports + sample.load + sample.tokenise + self.loading

    def _looks(self, token: float, tokens: int, count: int) -> float:
        return token * tokens + count * self.sample.look

    def _trial(self, settings: TrainerSettings) -> float:
        """Steps, evaluations, and the last look at the best checkpoint."""
        token, sample = self.token[settings.encoder], self.sample
        chosen, other = sample.dev, sample.test
        if settings.select_on == "test":
            chosen, other = other, chosen
        evaluations = math.ceil(settings.steps / settings.evaluate_every)
        return (
            settings.steps * self.steps[kind_of(settings)]
            + evaluations * self._looks(token, chosen, 1)
            + self._looks(token, other, 2)
            + token * sample.suite
            + sample.score
        )

    def whole(self, count: int, jobs: int) -> float:
        """From the command to its end: each worker takes the next trial as soon as it is free.

        A model is saved whenever a trial is the best so far, about ln(count) times by chance.
        """
        free = [(self.start, loaded_by(self.settings[0]))] * jobs
        for place in range(count):
            settings = self.settings[place % len(self.settings)]
            seconds, loaded = heapq.heappop(free)
            if loaded != loaded_by(settings):
                seconds += self.loading
            seconds += self.trials[place % len(self.settings)]
            heapq.heappush(free, (seconds, loaded_by(settings)))
        saving = self._looks(self.token[self.settings[0].encoder], self.sample.dev, 1)
        return max(seconds for seconds, _ in free) + math.log(count + 1) * saving / jobs


def loaded_by(settings: TrainerSettings) -> tuple[str, ...]:
    """What a worker has loaded for a trial; with anything else it loads again."""
    return tuple(str(getattr(settings, name)) for name in LOADING)


def database_bytes(settings: TrainerSettings) -> int:
    """What a trial adds to the database: its curves, its spectra, its rows."""
    curves = MEASURED + len(EVALUATED)
    evaluations = math.ceil(settings.steps / settings.evaluate_every)
    return 4 * curves * settings.steps + EVALUATION_ROW * evaluations + TRIAL_ROWS


def _checkpoints(trials: Sequence[TrainerSettings], weights: int) -> int:
    """Bytes of two: the best checkpoint so far and the one that takes its place.

    Each has the encoder, and the target where the method has one.
    """
    branches = max(each.encoder_copies for each in trials)
    return 2 * branches * weights


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
