"""What a worker does after every step of a trial: stop, prune, save a checkpoint."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna

from mtdlab.config import TrainerSettings
from mtdlab.store import Claim, Store
from mtdlab.store.owner import this_process
from mtdlab.sweep.heartbeat import Heartbeat
from mtdlab.sweep.optuna_study import OptunaStudy
from mtdlab.sweep.signals import Interrupted, StopRequest

if TYPE_CHECKING:
    # they import transformers, which a program of the user does without
    from mtdlab.evaluation.sts import Evaluation
    from mtdlab.sweep.checkpoints import TrialCheckpoints


@dataclass
class OpenStudy:
    """What a worker process keeps open for one study.

    precision  what `precision: auto` means in this study; None where no trial uses it.
    select_by  the score that ranks the trials.
    model, checkpoints  the folders of the best trial's model, and of the trials' checkpoints.
    lost  how many trials in succession have lost the connection to the database.
    """

    optuna: OptunaStudy
    store: Store
    precision: str | None
    select_by: str
    model: Path
    checkpoints: Path
    owner: dict[str, Any] = field(default_factory=this_process)
    lost: int = 0


@dataclass(frozen=True)
class TrialRun:
    """A claimed trial that begins, or goes on, in this process. folder: of its checkpoints."""

    study: OpenStudy
    claim: Claim
    stop: StopRequest
    heartbeat: Heartbeat
    folder: Path


class Watch:
    """What every trial does between its steps: keep its claim, report its scores, be pruned.

    step      the last that was passed.
    reported  scores by step; where a pruner watches, with those of earlier processes.
    """

    def __init__(
        self, study: OpenStudy, claim: Claim, stop: StopRequest, heartbeat: Heartbeat
    ) -> None:
        self.study, self.claim = study, claim
        self.stop, self.heartbeat, self.step = stop, heartbeat, 0
        is_watched = study.optuna.is_watched
        self.reported = study.optuna.reported(claim.number) if is_watched else {}

    def passed(self, step: int, shown: int) -> None:
        """After `step` steps; `shown` is the step of the progress display. Raises ClaimLost."""
        self.step, self.heartbeat.step = step, shown
        self.heartbeat.check()

    def evaluated(self, step: int, score: float) -> None:
        """Report a score after `step` steps, unless it is NaN. Raises optuna.TrialPruned."""
        if not math.isfinite(score):
            return
        self.reported[step] = score
        optuna_study = self.study.optuna
        if optuna_study.is_watched and optuna_study.report(self.claim.number, step, score):
            raise optuna.TrialPruned


class TrialMonitor(Watch):
    """Called after every step: stops and prunes the trial, reports its step, saves its state.

    The step of an evaluation is reported when it begins, so that progress shows it
    (`RunningTrial.phase`).
    """

    def __init__(
        self,
        study: OpenStudy,
        claim: Claim,
        stop: StopRequest,
        settings: TrainerSettings,
        checkpoints: "TrialCheckpoints",
        heartbeat: Heartbeat,
    ) -> None:
        super().__init__(study, claim, stop, heartbeat)
        self.settings, self.checkpoints = settings, checkpoints

    def __call__(self, step: int, evaluation: "Evaluation | None") -> None:
        """After `step` steps, with the evaluation that followed. May raise Interrupted, ClaimLost
        and optuna.TrialPruned.
        """
        self.passed(step, step + 1 if self._is_evaluated(step + 1) else step)
        if self.stop.requested():
            self._save()
            raise Interrupted
        if evaluation is not None:
            self.evaluated(step, evaluation.score)
        if self.checkpoints.due():
            self._save()

    def _save(self) -> None:
        # not into the folder of another worker, which may have claimed the trial since
        self.heartbeat.beat()
        self.heartbeat.check()
        if self.checkpoints.save() and self.claim.deaths:
            self.study.store.forget_deaths(self.claim)

    def _is_evaluated(self, step: int) -> bool:
        last, every = self.settings.steps, self.settings.evaluate_every
        return step == last or (step < last and step % every == 0)
