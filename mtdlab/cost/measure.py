"""The durations of training steps and of embedding on this machine, in workers like a sweep's."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import torch

from mtdlab.analysis.measures import Floats
from mtdlab.cost.sample import Sample, cache_in
from mtdlab.device import choose_device, peak_memory
from mtdlab.encoders.embed import Embedder
from mtdlab.encoders.traits import describe_encoder
from mtdlab.errors import TrialError
from mtdlab.methods.registry import make_settings
from mtdlab.methods.user_modules import ensure_imported
from mtdlab.settings import TrainerSettings, settings_of
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import train
from mtdlab.trial.signals import StopRequest
from mtdlab.trial.slots import take_gpu
from mtdlab.user_code import UserModule

IMPORTED = time.time()
"""When the process that the workers are forks of had imported everything: this module is last."""
MOST_SECONDS = 11.0
"""Duration of all timed steps at most, unless a few of a kind take longer."""
STEADY_SECONDS = 1.0
"""For how long a step is repeated where there is time, and embedding."""
FEWEST = 3
"""Repetitions, whatever they take: one that is left out, and two that are counted."""
FIRST_BATCH = 4
"""Batch size of the first steps of a kind: quick ones, which say how many fit into the time."""

Kind = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Measured:
    """The measurement of one worker. Seconds, bytes.

    Attributes:
        imported: when the workers' packages were imported, on the clock of `time.time`.
        steps: duration of a step of each kind.
        token: duration of embedding one token, by encoder.
        memory: peak memory at the largest step.
        gpu_memory: of the GPU, 0 without one.
        weights: size of the encoder.
        trained: size of its trained weights, which a checkpoint contains.
        encoders: how each encoder reads a text; its family, forward pass and dropout.
    """

    imported: float
    steps: dict[Kind, float]
    token: dict[str, float]
    memory: int
    gpu_memory: int
    weights: int
    trained: int
    encoders: dict[str, str]


def kind_of(settings: TrainerSettings) -> Kind:
    """The settings that decide the cost of a step; equal for steps that cost the same."""
    costs = {name: setting.step_cost for name, setting in settings_of(type(settings)).items()}
    return tuple(
        (name, getattr(settings, name) > 0 if cost == "switch" else getattr(settings, name))
        for name, cost in costs.items()
        if cost != "none"
    )


def measure(
    modules: Sequence[UserModule],
    kinds: Sequence[dict[str, Any]],
    sample: Sample,
    stop: StopRequest,
) -> Measured:
    """Time steps of every kind, and embedding with every encoder.

    `kinds`: plain values, since a method of the user's own cannot be unpickled before `modules` are
    imported. Raises TrialError where a stop is requested.
    """
    ensure_imported(modules)
    take_gpu()
    timed = [make_settings(**values) for values in kinds]
    seconds = MOST_SECONDS / len(timed)
    steps, token, encoders = dict[Kind, float](), dict[str, float](), dict[str, str]()
    with cache_in(sample.folder):
        parameters = list(load_inputs(sample.of(timed[0])).encoder.model.parameters())
        peaks = []
        # the largest batch first: how the peak grows with a batch is hidden by that of a larger one
        for settings in sorted(timed, key=lambda settings: -settings.batch_size):
            steps[kind_of(settings)], *peak = time_kind(sample.of(settings), seconds, stop).tolist()
            peaks.append(peak)
        of_encoder = {settings.encoder_name: sample.of(settings) for settings in reversed(timed)}
        for name, settings in of_encoder.items():
            inputs = load_inputs(settings)
            token[name] = time_embedding(settings, inputs)
            encoder, alike = inputs.encoder, (one for one in timed if one.encoder_name == name)
            reading = " or ".join(sorted({encoder.reading(one.representation) for one in alike}))
            encoders[name] = f"{reading}; {describe_encoder(encoder.model, encoder.dropout_fields)}"
        # embedding, which is not among the steps, may have needed more
        peaks.append([peak_memory(), choose_device(timed[0]).gpu_memory()])
    memory, gpu_memory = np.max(peaks, axis=0).astype(int).tolist()
    return Measured(
        imported=IMPORTED,
        steps=steps,
        token=token,
        memory=memory,
        gpu_memory=gpu_memory,
        weights=4 * sum(weights.numel() for weights in parameters),
        trained=4 * sum(weights.numel() for weights in parameters if weights.requires_grad),
        encoders=encoders,
    )


def time_kind(settings: TrainerSettings, seconds: float, stop: StopRequest) -> Floats:
    """Seconds of a step, peak memory in bytes of the process and of its GPU, (3,).

    Timed for about `seconds`. A step that takes longer follows from the largest batch for which
    there is time.
    """

    def time_batch(batch: int, seconds: float) -> Floats:
        changed = {"batch_size": batch}
        if "initial_queue_size" in type(settings).model_fields:
            # full from the first step, as for most of a run
            changed["initial_queue_size"] = getattr(settings, "queue_size", 0)
        smaller = settings.model_copy(update=changed)
        step = time_steps(smaller, load_inputs(smaller), seconds, stop)
        return np.array([step, peak_memory(), choose_device(settings).gpu_memory()])

    least = min(FIRST_BATCH, settings.batch_size)
    small = time_batch(least, 0.0)
    affordable = int(least * seconds / (FEWEST * small[0]))
    most = max(least, min(settings.batch_size, affordable))
    large = time_batch(most, min(seconds, STEADY_SECONDS))
    return extrapolate(least, small, most, large, settings.batch_size)


def extrapolate(least: int, small: Floats, most: int, large: Floats, batch: int) -> Floats:
    """The three values of a step with `batch` sentences, from those with `least` and with `most`.

    Values are on the line through both. A duration is half way from there to one in proportion to
    the batch: the line leaves out that a larger batch is padded to longer sentences, proportion
    that a part of a step costs the same with any batch.
    """
    values = large + np.maximum(large - small, 0) / max(most - least, 1) * (batch - most)
    values[0] = (values[0] + large[0] * batch / most) / 2
    return np.asarray(values)


class _Enough(Exception):
    """This measurement is over."""


def time_steps(
    settings: TrainerSettings, inputs: RunInputs, seconds: float, stop: StopRequest
) -> float:
    """Mean seconds of a training step, repeated for about `seconds`, at least three times.

    The first step is left out: it allocates memory, builds kernels, and has no FGSM gradient yet.
    Raises TrialError where a stop is requested.
    """
    device, ends = choose_device(settings).device, list[float]()

    def on_step(_step: int, _evaluation: object) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if stop.requested():
            raise TrialError("the measurement was stopped by a signal; repeat the command")
        ends.append(time.perf_counter())
        if len(ends) >= FEWEST and ends[-1] - ends[0] >= seconds:
            raise _Enough

    endless = settings.model_copy(update={"steps": 100_000, "evaluate_every": 100_000})
    with suppress(_Enough):
        train(endless, inputs, on_step)
    return fmean(np.diff(ends))


def time_embedding(settings: TrainerSettings, inputs: RunInputs) -> float:
    """Mean seconds per token of embedding, repeated for about `STEADY_SECONDS`."""
    device, sentences = choose_device(settings), inputs.test.sentences
    embedder = Embedder(inputs.encoder.model, settings.representation, device)
    ends = list[float]()
    # the first repetition is left out
    while len(ends) < FEWEST or ends[-1] - ends[0] < STEADY_SECONDS:
        sentences.embed(embedder)
        ends.append(time.perf_counter())
    return fmean(np.diff(ends)) / sentences.token_count
