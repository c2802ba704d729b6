"""What a study costs on this machine: time, memory and disk, before it runs.

A few real steps of each kind are timed in as many workers, with as many threads, as the sweep
would start; the rest is computed from counts. Where that leaves a wide range, the range is given.
"""

import heapq
import math
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.analysis.data.tasks import LAST
from mtdlab.analysis.measures import Floats
from mtdlab.config import MethodSpec, TrainerSettings
from mtdlab.config.paths import resolve_paths
from mtdlab.cost.measure import Bounds, Kind, Measured, kind_of, measure_in_workers
from mtdlab.cost.sample import Sample, take_sample
from mtdlab.device import peak_memory
from mtdlab.errors import MtdlabError
from mtdlab.settings.roles import BASELINE
from mtdlab.sweep.fork_server import ForkServer
from mtdlab.training.present import check_present
from mtdlab.training.probe import LAGS
from mtdlab.training.state import EVALUATED
from mtdlab.trial.objective import modules_of
from mtdlab.trial.samplers import ask
from mtdlab.trial.slots import default_jobs, gpu_share, threads_each
from mtdlab.trial.trainer import data_warnings

CLOSE = 1.3
"""Ratio of the upper to the lower bound of a duration up to which their mean stands for both."""
DWARFS = 2.0
"""Above this ratio of evaluation to training a trial's evaluations are warned of."""
KNOWN = 1.1
"""Ratio of the bounds of a step up to which it counts as known."""
METHOD_COLUMNS = 4
"""Columns of a training curve beside those of its evaluations, at most, for our methods."""
SAMPLED_CONFIGURATIONS = 30
"""Configurations drawn as representatives of those of a study that samples."""
EMPTY_DATABASE, TRIAL_ROWS, EVALUATION_ROW = 160_000, 6_000, 40
"""Bytes: a database without trials, a trial's rows without its curves, one evaluation's row."""
TOKENIZER = 1_000_000
"""Bytes of a saved model without its weights."""


@dataclass(frozen=True)
class Estimate:
    """A study's cost. Seconds and bytes.

    Attributes:
        trials: those that are left to run; of a study with `until` at most.
        fewest: those that are left up to its first look; of another study all.
        seconds: of the sweep; None where its bounds are not close.
        between: seconds of the sweep at least, with the fewest trials, and at most.
        trial: duration of the shortest and of the longest trial.
        training: seconds of the longest trial in steps.
        evaluation: in evaluations.
        start: duration before the first step of the first trial.
        memory: maximum of all workers and the process that started them.
        gpu_memory: of a GPU, for each worker; 0 without one.
        gpu_workers: how many workers the smallest GPU of this machine has the memory for.
        kinds, known: kinds of step in the study, and of how many the duration is known to 10 %.
        encoders: family, forward pass and dropout of each encoder.
        warnings: sentences on evaluations that take long, and on scores and data.
    """

    trials: int
    fewest: int
    workers: int
    threads: int
    seconds: float | None
    between: Bounds
    trial: Bounds
    training: float
    evaluation: float
    start: float
    memory: int
    worker_memory: int
    gpu_memory: int
    gpu_workers: int
    database: int
    model: int
    kinds: int
    known: int
    encoders: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def estimate(
    spec: MethodSpec,
    jobs: int | None = None,
    jobs_per_gpu: int = 1,
    *,
    done: Collection[tuple[str, int]] = (),
) -> Estimate:
    """Estimate a study's cost with as many workers as a sweep would start.

    Args:
        done: configuration and seed of the trials that are not run any more.

    Raises:
        MtdlabError: where the study names an encoder or a text that is missing.
    """
    trials = trials_of(spec, done)
    check_present(trials)
    kinds = list({kind_of(each): each for each in trials}.values())
    # where the first look is past, one of the looks that follow may be the last
    chosen_by = [] if spec.nuisance is None else spec.nuisance.seeds
    first = [each for each in trials if each.seed in {*spec.first_seeds, *chosen_by}] or trials[:1]
    jobs = min(jobs or default_jobs(jobs_per_gpu), len(trials))
    requested = time.time()
    server = ForkServer(threads_each(jobs), (*modules_of(spec), measure_in_workers.__module__))
    with closing(server), tempfile.TemporaryDirectory() as folder:
        sample = take_sample(trials, Path(folder))
        measured = measure_in_workers(server, spec.user_modules, kinds, sample, jobs)
    steps = np.mean([each.steps for each in measured], axis=0)
    clock = Clock(
        sample,
        dict(zip(map(kind_of, kinds), steps, strict=True)),
        {
            name: np.mean([each.token[name] for each in measured], axis=0)
            for name in measured[0].token
        },
        float(np.mean([each.imported for each in measured])) - requested,
    )
    training = np.array([clock.training(each) for each in trials])
    evaluation = np.array([clock.evaluation(each) for each in trials])
    trial, longest = training + evaluation, training[:, 0].argmax()
    in_steps, in_evaluations = float(training[longest, 1]), float(evaluation[longest, 1])
    low, high = clock.whole(first, jobs)[0], clock.whole(trials, jobs)[1]
    gpu = max(each.gpu_memory for each in measured)
    # the best checkpoint so far, and the one that replaces it
    worker = int(np.mean([each.memory for each in measured]))
    worker += 2 * checkpoint_bytes(trials, measured[0].trained)
    return Estimate(
        trials=len(trials),
        fewest=len(first),
        workers=jobs,
        threads=threads_each(jobs),
        seconds=(low + high) / 2 if high <= CLOSE * low else None,
        between=(low, high),
        trial=(float(trial[:, 0].min()), float(trial[:, 1].max())),
        training=in_steps,
        evaluation=in_evaluations,
        start=float(clock.start(trials[0])[1]),
        memory=jobs * worker + peak_memory(),
        worker_memory=worker,
        gpu_memory=gpu,
        gpu_workers=gpu_share(gpu),
        database=EMPTY_DATABASE + sum(map(database_bytes, trials)),
        model=model_bytes(trials, measured[0]),
        kinds=len(kinds),
        known=int((steps[:, 1] <= KNOWN * steps[:, 0]).sum()),
        encoders=measured[0].encoders,
        warnings=warn_of_evaluation(in_steps, in_evaluations) + data_warnings(spec),
    )


def warn_of_evaluation(training: float, evaluation: float) -> list[str]:
    """A sentence where a trial's evaluations take more than twice its steps; seconds."""
    if evaluation <= DWARFS * training:
        return []
    return [
        f"a trial evaluates for {format_seconds(evaluation)} and trains for "
        f"{format_seconds(training)}; raise evaluate_every, or take tasks or evaluation pairs out"
    ]


def trials_of(spec: MethodSpec, done: Collection[tuple[str, int]] = ()) -> list[TrainerSettings]:
    """The settings of every trial that is not done, with the paths of its texts.

    Those of a sampled study's search are some that it might draw. Raises MtdlabError where none of
    these can be trained.
    """
    left = [trial for trial in spec.planned_trials() if trial.key not in done]
    if spec.sampler != "grid":
        drawn = cycle(draw_configurations(spec))
        left = [
            trial if trial.role == BASELINE else replace(trial, parameters=next(drawn))
            for trial in left
        ]
    trials = (spec.settings(trial.parameters or {}, trial.seed, trial.role) for trial in left)
    return [resolve_paths(settings, spec.places) for settings in trials]


def draw_configurations(spec: MethodSpec) -> list[dict[str, Any]]:
    """Configurations of a sampled study that can be trained. Raises MtdlabError where none can."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study, drawn = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)), []
    for _ in range(SAMPLED_CONFIGURATIONS):
        parameters = ask(study, spec)
        # some do not go together
        with suppress(ValueError):
            spec.settings(parameters, spec.seeds[0])
            drawn.append(parameters)
    if not drawn:
        raise MtdlabError(f"none of {SAMPLED_CONFIGURATIONS} settings drawn can be trained")
    return drawn


@dataclass(frozen=True)
class Clock:
    """Durations as the workers measured them on average: each a lower and an upper bound, (2,).

    Attributes:
        steps: seconds of a step of each kind.
        token: seconds of embedding one token, by encoder.
        imports: seconds until the workers' packages are imported.
    """

    sample: Sample
    steps: dict[Kind, Floats]
    token: dict[str, Floats]
    imports: float

    def training(self, settings: TrainerSettings) -> Floats:
        """Seconds of a trial in steps."""
        return settings.steps * self.steps[kind_of(settings)]

    def evaluation(self, settings: TrainerSettings) -> Floats:
        """Seconds of a trial's evaluations, and of the final scoring of its best checkpoint."""
        tokens, selected = self.sample.tokens, settings.select_on
        # the split on which the checkpoint is selected is not encoded again
        encoded = tokens[selected] if selected in ("dev", LAST, "test") else 0
        looks = math.ceil(settings.steps / settings.evaluate_every)
        count = looks * tokens[selected] + self.sample.all_tokens - encoded
        return count * self.token[settings.encoder]

    def start(self, first: TrainerSettings) -> Floats:
        """Seconds before the first step; the sweep and its workers import at the same time.

        The sweep loads and tokenises the texts, then a worker loads them and scores the encoder.
        """
        scoring = self.sample.all_tokens * self.token[first.encoder]
        return self.imports + 2 * self.sample.load + self.sample.tokenise + scoring

    def whole(self, trials: Sequence[TrainerSettings], jobs: int) -> Bounds:
        """Seconds from the start of the command to its end; a free worker takes the next trial."""
        durations = np.array([self.training(each) + self.evaluation(each) for each in trials])
        start = self.start(trials[0])
        ends = []
        for bound in (0, 1):
            free = [float(start[bound])] * jobs
            for seconds in durations[:, bound].tolist():
                heapq.heappush(free, heapq.heappop(free) + seconds)
            ends.append(max(free))
        return ends[0], ends[1]


def database_bytes(settings: TrainerSettings) -> int:
    """Bytes that a trial adds to the database: curves, measurements of keys, spectra, rows."""
    curves = METHOD_COLUMNS + len(EVALUATED)
    evaluations = math.ceil(settings.steps / settings.evaluate_every)
    probes = math.ceil(settings.steps / settings.probe_every) if settings.probe_every else 0
    values = curves * settings.steps + (2 + len(LAGS)) * probes
    return 4 * values + EVALUATION_ROW * evaluations + TRIAL_ROWS


def checkpoint_bytes(trials: Sequence[TrainerSettings], trained: int) -> int:
    """Bytes of the trained weights in a checkpoint."""
    return max(each.encoder_copies for each in trials) * trained


def model_bytes(trials: Sequence[TrainerSettings], measured: Measured) -> int:
    """Bytes of a saved model: a checkpoint with the weights that are not trained."""
    frozen = measured.weights - measured.trained
    return checkpoint_bytes(trials, measured.trained) + frozen + TOKENIZER
