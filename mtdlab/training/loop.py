"""The training loop, the same for every method.

MoCoSE, algorithm 1. The views, loss and updates of a method are in its file in `mtdlab/methods/`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from mtdlab.analysis.data.tasks import LAST
from mtdlab.device import choose_device
from mtdlab.encoders.adapters import copy_to_train, load_own_state
from mtdlab.encoders.embed import Embedder
from mtdlab.errors import TrialError
from mtdlab.evaluation.items import Items
from mtdlab.evaluation.suite import Evaluation
from mtdlab.methods.base import Step, Tokens
from mtdlab.methods.registry import find_method
from mtdlab.settings import TrainerSettings
from mtdlab.settings.tasks import needed, score_of_selection
from mtdlab.training.inputs import EncoderScores, RunInputs, selection_of
from mtdlab.training.optimizer import clip_gradients, set_rates
from mtdlab.training.probe import Column, KeySimilarity, Probe
from mtdlab.training.state import EVALUATED, RunState, State


@dataclass(frozen=True)
class Outcome:
    """A finished run. `best_step` counts from 1; `before` is the encoder before training.

    The best checkpoint is that of the last step where `select_on` is `last`. `probes` are
    `Probe.columns`, `history` is `KeySimilarity.columns`; `peak_memory` is in bytes since the run
    began or was resumed, NaN where a peak from before cannot be told from it.
    """

    best_step: int
    before: EncoderScores
    after: EncoderScores
    curve: dict[str, Column]
    states: dict[str, State]
    wall_seconds: float
    peak_memory: float = np.nan
    probes: dict[str, Column] = field(default_factory=dict)
    history: dict[str, Column] = field(default_factory=dict)

    def score_of(self, metric: str) -> tuple[float, float]:
        """A metric of the best checkpoint and the untrained encoder, x 100; NaN unless all are."""
        names = needed(metric) or (metric,)
        after, before = (
            float(np.mean([scores.get(name, np.nan) for name in names]))
            for scores in (self.after.by_name(), self.before.by_name())
        )
        return after, before

    def items_of(self, metric: str) -> dict[str, Items]:
        """The items of a metric of the best checkpoint, by task; none unless each task has some."""
        names, named = needed(metric) or (metric,), self.after.named
        items = {name: one for name in names if name in named and (one := named[name].items)}
        return items if len(items) == len(names) else {}

    @property
    def weights(self) -> State:
        """The encoder's weights in the best checkpoint."""
        return self.states["encoder"]


OnStep = Callable[[int, Evaluation | None], None]


def start(settings: TrainerSettings, inputs: RunInputs) -> RunState:
    """A run before its first step; seeds torch. Raises MtdlabError for a corpus below a batch."""
    torch.manual_seed(settings.seed)
    device = choose_device(settings)
    kind = find_method(settings.method)
    method = kind(copy_to_train(inputs.encoder.model), settings, device)
    method.use_pooler(inputs.encoder.pooler)
    batches = inputs.batches(settings.batch_size, settings.seed)
    every = settings.probe_every
    probe = Probe(inputs.tokens, every, device.device) if every else None
    return RunState(method, batches, KeySimilarity(inputs.tokens, method), probe)


def train(
    settings: TrainerSettings,
    inputs: RunInputs,
    on_step: OnStep | None = None,
    state: RunState | None = None,
) -> Outcome:
    """Train one encoder, or continue from `state`, and score its best checkpoint by `select_on`.

    `on_step(steps_done, evaluation)` is called after every step, with None where no evaluation
    followed it. An exception that it raises ends the run; `state` can be resumed. Raises TrialError
    if training fails, and MtdlabError from `start`.
    """
    device = choose_device(settings)
    from_here = device.reset_peak_memory()
    state = state or start(settings, inputs)
    steps = RunSteps(settings, inputs, state, on_step)
    if state.method.brings_trainer:
        state.method.take_steps(steps)
    else:
        take_steps(steps)
    outcome = _finish(inputs, steps)
    return replace(outcome, peak_memory=device.peak_memory()) if from_here else outcome


def take_steps(steps: "RunSteps") -> None:
    """Take the steps of a run that are left: what mtdlab's trainer does."""
    settings, method, optimizer = steps.settings, steps.state.method, steps.optimizer
    while steps.left:
        step, views = steps.state.step, steps.begin()
        result = method(step, views)
        (settings.loss_weight * result.loss).backward()
        clip_gradients(optimizer, settings)
        optimizer.step()
        optimizer.zero_grad()
        method.update(step, result)
        steps.end(result)


class RunSteps:
    """What precedes and what follows a step, whoever takes it (`mtdlab.methods.base.Steps`)."""

    def __init__(
        self,
        settings: TrainerSettings,
        inputs: RunInputs,
        state: RunState,
        on_step: OnStep | None = None,
    ) -> None:
        self.settings, self.state, self._on_step = settings, state, on_step
        self.optimizer: torch.optim.Optimizer = state.optimizer
        # with the seconds of an earlier call
        self.began = time.perf_counter() - state.seconds
        method = state.method
        self.embedder = Embedder(method.encoder, settings.representation, method.device)
        self._selecting = replace(self.embedder, head=method.selection_head())
        self._chosen_on = selection_of(settings, inputs)

    @property
    def left(self) -> int:
        return self.settings.steps - self.state.step

    def begin(self) -> list[Tokens]:
        """The views of the next step's batch, once what precedes the step is done."""
        state, step = self.state, self.state.step
        state.similarity.record(step, state.method)
        if state.probe is not None:
            state.probe.record(step, state.method)
        set_rates(self.optimizer, step, self.settings)
        move = partial(Tensor.to, device=state.method.device.device, non_blocking=True)
        return [(move(ids), move(mask)) for ids, mask in next(state.batches)]

    def end(self, result: Step) -> None:
        """Record a step that was taken, and evaluate where that is due. Raises TrialError."""
        settings, state, step = self.settings, self.state, self.state.step
        state.curve.record(step, {"loss": result.loss.detach(), **result.measures})
        evaluation, is_last = None, step + 1 == settings.steps
        if settings.evaluates_at(step + 1):
            state.curve.check(step)
            vectors, evaluation = self._chosen_on.measure(self._selecting)
            state.curve.record(step, {name: getattr(evaluation, name) for name in EVALUATED})
            if is_last or settings.select_on != LAST:
                state.best.consider(step, evaluation.score, vectors, state.method.parts())
        state.step += 1
        state.seconds = time.perf_counter() - self.began
        if self._on_step is not None:
            self._on_step(state.step, evaluation)


def _finish(inputs: RunInputs, steps: RunSteps) -> Outcome:
    """Load the best checkpoint and score it on the other split, which no step has evaluated."""
    state, embedder = steps.state, steps.embedder
    best, chosen_by = state.best, score_of_selection(steps.settings.select_on)
    if best.step < 0:
        raise TrialError(
            "collapsed: all cosines are equal, so no checkpoint has a score", "collapsed"
        )
    load_own_state(embedder.model, best.states["encoder"])
    plain = state.method.selection_head() is None
    dev_vectors, test_vectors = (
        best.vectors if f"sts_{split}" == chosen_by and plain else pairs.embed(embedder)
        for split, pairs in (("dev", inputs.dev), ("test", inputs.test))
    )
    return Outcome(
        best_step=best.step + 1,
        before=inputs.before,
        after=inputs.evaluate(embedder, dev_vectors, test_vectors),
        curve=state.curve.columns(),
        states=best.states,
        wall_seconds=time.perf_counter() - steps.began,
        probes=state.probe.columns() if state.probe else {},
        history=state.similarity.columns(),
    )
