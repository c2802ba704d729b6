"""What a worker does after every step of a trial: stop, prune, heartbeat, checkpoint."""

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna

from mtdlab.config import TrainerSettings
from mtdlab.evaluation.sts import Evaluation
from mtdlab.store import Claim, Store
from mtdlab.sweep.checkpoints import TrialCheckpoints
from mtdlab.sweep.optuna_study import OptunaStudy
from mtdlab.sweep.owner import this_process
from mtdlab.sweep.signals import Interrupted, StopRequest

HEARTBEAT_SECONDS = 2.0


class ClaimLost(Exception):
    """Another worker claimed this trial while this process was suspended."""


@dataclass
class OpenStudy:
    """What a worker process keeps open for one study.

    precision  what `precision: auto` means in this study; None where no trial uses it.
    select_by  the score that ranks the trials; None where the study's metric does.
    model, checkpoints  the folders of the best trial's model, and of the trials' checkpoints.
    """

    optuna: OptunaStudy
    store: Store
    precision: str | None
    select_by: str | None
    model: Path
    checkpoints: Path
    owner: dict[str, Any] = field(default_factory=this_process)


class TrialMonitor:
    """Called after every step: stops and prunes the trial, records its heartbeat, saves its state.

    An evaluation that may take long is recorded when it begins, as its step, so that progress
    shows it (`RunningTrial.phase`).
    """

    def __init__(
        self,
        study: OpenStudy,
        claim: Claim,
        trial: optuna.Trial,
        stop: StopRequest,
        settings: TrainerSettings,
        checkpoints: TrialCheckpoints,
    ) -> None:
        self.study, self.claim, self.trial, self.stop = study, claim, trial, stop
        self.settings, self.checkpoints = settings, checkpoints
        self.step, self.last_heartbeat = 0, time.monotonic()
        self._evaluation_began, self._evaluation_seconds = 0.0, math.inf
        # an interrupted trial goes on as the same Optuna trial, which takes each step's value once
        self._reported = study.optuna.storage.get_trial(trial._trial_id).intermediate_values

    def __call__(self, step: int, evaluation: Evaluation | None) -> None:
        """After `step` steps, with the evaluation that followed. May raise Interrupted, ClaimLost
        and optuna.TrialPruned.
        """
        self.step = step
        if self.stop.requested():
            self.checkpoints.save()
            raise Interrupted
        if evaluation is not None:
            self._evaluated(step, evaluation)
        elif time.monotonic() - self.last_heartbeat > HEARTBEAT_SECONDS:
            self._record(step)
        if self._is_evaluated(step + 1):
            self._evaluation_began = time.monotonic()
            if self._evaluation_seconds > HEARTBEAT_SECONDS:
                self._record(step + 1)
        self.checkpoints.save_if_due()

    def _evaluated(self, step: int, evaluation: Evaluation) -> None:
        self._evaluation_seconds = time.monotonic() - self._evaluation_began
        if math.isfinite(evaluation.score):
            if step not in self._reported:
                self.trial.report(evaluation.score, step)
            if self.trial.should_prune():
                raise optuna.TrialPruned

    def _is_evaluated(self, step: int) -> bool:
        last, every = self.settings.steps, self.settings.evaluate_every
        return step == last or (step < last and step % every == 0)

    def _record(self, step: int) -> None:
        if not self.study.store.heartbeat(self.claim, self.study.owner, step):
            raise ClaimLost
        self.last_heartbeat = time.monotonic()
