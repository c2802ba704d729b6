"""What a study costs on this machine: time, memory and disk, before it runs.

A few real steps of each kind are timed in as many workers, with as many threads, as the sweep
would start; the rest is computed from counts.
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
from statistics import fmean
from typing import Any

import optuna

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.config.method_study import MethodSpec
from mtdlab.config.paths import resolve_paths
from mtdlab.cost.measure import Measured, kind_of, measure
from mtdlab.cost.sample import take_sample
from mtdlab.device import peak_memory
from mtdlab.errors import MtdlabError
from mtdlab.settings import TrainerSettings
from mtdlab.settings.roles import BASELINE
from mtdlab.sweep.fork_server import ForkServer, call_in_forks
from mtdlab.training.present import check_present
from mtdlab.training.probe import LAGS
from mtdlab.training.state import EVALUATED
from mtdlab.trial.samplers import ask
from mtdlab.trial.slots import default_jobs, gpu_share, threads_each
from mtdlab.trial.study import modules_of

DWARFS = 2.0
"""Above this ratio of evaluation to training a trial's evaluations are warned of."""
METHOD_COLUMNS = 4
"""Columns of a training curve beside those of its evaluations, at most, for our methods."""
SAMPLED_CONFIGURATIONS = 30
"""Configurations drawn as representatives of those of a study that samples."""
EMPTY_DATABASE, TRIAL_ROWS, EVALUATION_ROW = 160_000, 6_000, 40
"""Bytes: a database without trials, a trial's rows without its curves, one evaluation's row."""
TOKENIZER = 1_000_000
"""Bytes of a saved model without its weights."""


@dataclass(frozen=True)
class CostEstimate:
    """A study's cost. Seconds and bytes.

    Attributes:
        trials: those that are left to run; of a study with `until` at most.
        fewest: those that are left up to its first look; of another study all.
        seconds: of the sweep with the fewest trials, and with all.
        trial: duration of the shortest and of the longest trial.
        evaluation: seconds of evaluations in the longest trial.
        start: duration before the first step of the first trial.
        memory: maximum of all workers and the process that started them.
        gpu_memory: of a GPU, for each worker; 0 without one.
        gpu_workers: how many workers the smallest GPU of this machine has the memory for.
        encoders: how each encoder reads a text; its family, forward pass and dropout.
        warnings: sentences on evaluations that take long.
    """

    trials: int
    fewest: int
    workers: int
    threads: int
    seconds: tuple[float, float]
    trial: tuple[float, float]
    evaluation: float
    start: float
    memory: int
    worker_memory: int
    gpu_memory: int
    gpu_workers: int
    database: int
    model: int
    encoders: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def estimate(
    spec: MethodSpec,
    jobs: int | None = None,
    jobs_per_gpu: int = 1,
    *,
    done: Collection[tuple[str, int]] = (),
) -> CostEstimate:
    """Estimate a study's cost with as many workers as a sweep would start, without the trials done.

    Raises MtdlabError where an encoder or a text is missing, TrialError where a worker dies or is
    stopped by a signal.
    """
    trials = trials_of(spec, done)
    check_present(trials)
    jobs = min(jobs or default_jobs(jobs_per_gpu), len(trials))
    requested = time.time()
    server = ForkServer(threads_each(jobs), (*modules_of(spec), measure.__module__))
    with closing(server), tempfile.TemporaryDirectory() as folder:
        sample = take_sample(trials, Path(folder))
        distinct = {kind_of(trial): trial for trial in trials}
        kinds = [trial.model_dump() for trial in distinct.values()]
        call = (measure, (spec.user_modules, kinds, sample))
        measured: list[Measured] = call_in_forks(server, call, jobs)
    one = measured[0]
    step = {kind: fmean(fork.steps[kind] for fork in measured) for kind in one.steps}
    token = {name: fmean(fork.token[name] for fork in measured) for name in one.token}
    training = [trial.steps * step[kind_of(trial)] for trial in trials]
    evaluation = [sample.encoded(trial) * token[trial.encoder_name] for trial in trials]
    seconds = list(map(sum, zip(training, evaluation, strict=True)))
    # the sweep, which imports at the same time, loads and tokenises the texts; then a worker loads
    # them and scores the encoder
    start = one.imported - requested + 2 * sample.load + sample.tokenise
    start += sample.tokens["all"] * token[trials[0].encoder_name]
    # where the first look is past, one of the looks that follow may be the last
    seeds = {*spec.first_seeds, *([] if spec.nuisance is None else spec.nuisance.seeds)}
    first = [seconds[at] for at, trial in enumerate(trials) if trial.seed in seeds] or seconds[:1]
    longest = seconds.index(max(seconds))
    checkpoint = max(trial.encoder_copies for trial in trials) * one.trained
    # the best checkpoint so far, and the one that replaces it
    worker = int(fmean(fork.memory for fork in measured)) + 2 * checkpoint
    gpu = max(fork.gpu_memory for fork in measured)
    return CostEstimate(
        trials=len(trials),
        fewest=len(first),
        workers=jobs,
        threads=threads_each(jobs),
        seconds=(start + share(first, jobs), start + share(seconds, jobs)),
        trial=(min(seconds), max(seconds)),
        evaluation=evaluation[longest],
        start=start,
        memory=jobs * worker + peak_memory(),
        worker_memory=worker,
        gpu_memory=gpu,
        gpu_workers=gpu_share(gpu),
        database=EMPTY_DATABASE + sum(map(database_bytes, trials)),
        # a checkpoint with the weights that are not trained
        model=checkpoint + one.weights - one.trained + TOKENIZER,
        encoders=one.encoders,
        warnings=warn_of_evaluation(training[longest], evaluation[longest]),
    )


def share(seconds: Sequence[float], jobs: int) -> float:
    """Seconds until trials of these durations are done; a free worker takes the next one."""
    ends = [0.0] * jobs
    for duration in seconds:
        heapq.heapreplace(ends, ends[0] + duration)
    return max(ends)


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


def database_bytes(settings: TrainerSettings) -> int:
    """Bytes that a trial adds to the database: curves, measurements of keys, spectra, rows."""
    curves = METHOD_COLUMNS + len(EVALUATED)
    evaluations = math.ceil(settings.steps / settings.evaluate_every)
    probes = math.ceil(settings.steps / settings.probe_every) if settings.probe_every else 0
    values = curves * settings.steps + (2 + len(LAGS)) * probes
    return 4 * values + EVALUATION_ROW * evaluations + TRIAL_ROWS
