"""What a worker does after every step of a trial: stop, prune, save a checkpoint."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna

from mtdlab.errors import TrialError
from mtdlab.settings import TrainerSettings
from mtdlab.settings.limits import too_far
from mtdlab.settings.roles import SEARCH
from mtdlab.trial.signals import Interrupted
from mtdlab.trial.study import TrialRun

if TYPE_CHECKING:
    # they import transformers, which a program of the user does without
    from mtdlab.evaluation.suite import Evaluation
    from mtdlab.trial.checkpoints import TrialCheckpoints


class Watch:
    """What every trial does between its steps: keep its claim, report its scores, be pruned.

    Attributes:
        step: the last that was passed.
        reported: scores by step; where a pruner watches, with those of earlier processes.
    """

    def __init__(self, run: TrialRun) -> None:
        self.run, self.step = run, 0
        self._is_pruned = run.study.spec.pruner != "none" and run.claim.role == SEARCH
        self.reported = dict(run.claim.reports)
        self._has_deaths = bool(run.claim.deaths)

    def passed(self, step: int, phase: str) -> None:
        """Record that `step` steps have passed and that `phase` begins. Raises ClaimLost."""
        self.step, self.run.heartbeat.step, self.run.heartbeat.phase = step, step, phase
        self.run.heartbeat.check()

    def evaluated(self, step: int, score: float) -> None:
        """Report a finite score after `step` steps. Raises TrialError, and optuna.TrialPruned."""
        if not math.isfinite(score):
            return
        if problem := too_far(f"the score after step {step}", score):
            raise TrialError(problem)
        self.reported[step] = score
        if self._is_pruned and self.run.study.optuna.report(self.run.claim, step, score):
            raise optuna.TrialPruned

    def reset_deaths(self) -> None:
        """Count deaths anew, once: the trial has come further than the processes that died."""
        if self._has_deaths:
            self.run.study.store.reset_deaths(self.run.claim)
            self._has_deaths = False

    def arrays(self, steps: str, scores: str) -> dict[str, Any]:
        """The reports as arrays (P,) by these names, for P of them: the steps, and the scores."""
        at = sorted(self.reported)
        reported = [self.reported[step] for step in at]
        return {steps: np.asarray(at, np.float32), scores: np.asarray(reported, np.float32)}


class TrialMonitor(Watch):
    """Called after every step: stops and prunes the trial, reports its step, saves its state."""

    def __init__(
        self, run: TrialRun, settings: TrainerSettings, checkpoints: "TrialCheckpoints"
    ) -> None:
        super().__init__(run)
        self.settings, self.checkpoints = settings, checkpoints

    def __call__(self, step: int, evaluation: "Evaluation | None") -> None:
        """Check what is due after a step. Raises Interrupted, ClaimLost and optuna.TrialPruned."""
        self.passed(step, self.settings.phase_after(step))
        if self.run.stop.requested():
            self._save()
            raise Interrupted
        if evaluation is not None:
            self.evaluated(step, evaluation.score)
        if self.checkpoints.due():
            self._save()

    def _save(self) -> None:
        # not into the folder of another worker, which may have claimed the trial since
        self.run.heartbeat.beat()
        self.run.heartbeat.check()
        if self.checkpoints.save():
            self.reset_deaths()
