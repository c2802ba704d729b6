"""What a worker does after every step of a trial: stop, prune, save a checkpoint."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna

from mtdlab.config import TrainerSettings
from mtdlab.evaluation.sts import Evaluation
from mtdlab.store import Claim, Store
from mtdlab.store.owner import this_process
from mtdlab.sweep.checkpoints import TrialCheckpoints
from mtdlab.sweep.heartbeat import Heartbeat
from mtdlab.sweep.optuna_study import OptunaStudy
from mtdlab.sweep.signals import Interrupted, StopRequest


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
    """Called after every step: stops and prunes the trial, reports its step, saves its state.

    The step of an evaluation is reported when it begins, so that progress shows it
    (`RunningTrial.phase`).
    """

    def __init__(
        self,
        study: OpenStudy,
        claim: Claim,
        trial: optuna.Trial,
        stop: StopRequest,
        settings: TrainerSettings,
        checkpoints: TrialCheckpoints,
        heartbeat: Heartbeat,
    ) -> None:
        self.study, self.claim, self.trial, self.stop = study, claim, trial, stop
        self.settings, self.checkpoints, self.heartbeat = settings, checkpoints, heartbeat
        self.step = 0
        # an interrupted trial goes on as the same Optuna trial, which takes each step's value once
        self._reported = study.optuna.storage.get_trial(trial._trial_id).intermediate_values

    def __call__(self, step: int, evaluation: Evaluation | None) -> None:
        """After `step` steps, with the evaluation that followed. May raise Interrupted, ClaimLost
        and optuna.TrialPruned.
        """
        self.step = step
        self.heartbeat.step = step + 1 if self._is_evaluated(step + 1) else step
        self.heartbeat.check()
        if self.stop.requested():
            self._save()
            raise Interrupted
        if evaluation is not None:
            self._evaluated(step, evaluation)
        if self.checkpoints.due():
            self._save()

    def _save(self) -> None:
        # not into the folder of another worker, which may have claimed the trial since
        self.heartbeat.beat()
        self.heartbeat.check()
        if self.checkpoints.save() and self.claim.deaths:
            self.study.store.forget_deaths(self.claim)

    def _evaluated(self, step: int, evaluation: Evaluation) -> None:
        if math.isfinite(evaluation.score):
            if step not in self._reported:
                self.trial.report(evaluation.score, step)
            if self.trial.should_prune():
                raise optuna.TrialPruned

    def _is_evaluated(self, step: int) -> bool:
        last, every = self.settings.steps, self.settings.evaluate_every
        return step == last or (step < last and step % every == 0)
