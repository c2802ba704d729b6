"""A program of the user as the objective of a study: called, its reports and scores recorded."""

import json
import math
import operator
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mtdlab.analysis.data.environment import Environment, RecordedProgram
from mtdlab.analysis.data.metric import as_read, is_negated
from mtdlab.config.program_study import ProgramSpec
from mtdlab.errors import StorageError, TrialError
from mtdlab.evaluation.items import own_scores
from mtdlab.files import make_folder
from mtdlab.programs import RETURNS, ProgramSettings
from mtdlab.settings import RunSettings
from mtdlab.settings.limits import STEPS, is_number, too_far
from mtdlab.store.claims import Result
from mtdlab.trial.environment import machine
from mtdlab.trial.model_folders import check_writable, remove_checkpoints_of
from mtdlab.trial.monitor import Watch
from mtdlab.trial.results import NOT_ENDING, ended_early, load_result, save_result
from mtdlab.trial.signals import Interrupted
from mtdlab.trial.study import Job, Objective, OpenStudy, TrialRun
from mtdlab.user_code import ended_forks

FOLDER = "program"
"""The folder that a program receives, in that of its trial, where mtdlab keeps its own files."""
_SECONDS = "seconds"
"""File of the seconds that interrupted calls took."""
_REPORTS = "reports"
"""File of the scores that interrupted calls reported, a line each: step and score."""
_PACKAGES = ("mtdlab", "optuna", "numpy")
_FRAMEWORKS = {
    "torch": "torch",
    "jax": "jax",
    "tensorflow": "tensorflow",
    "sklearn": "scikit-learn",
}
"""Packages whose versions are recorded where the program imports them: module, package."""


class ProgramObjective(Objective):
    """Calls the program; what it writes to its folder is there again when it is called again."""

    def check(self, job: Job) -> dict[str, Any]:
        """Check that checkpoints can be written; the digest of the program is in the identity."""
        check_writable(job.models)
        return {}

    def run(self, settings: RunSettings, run: TrialRun) -> Sequence[str]:
        spec = ProgramSpec.of(run.study.spec)
        assert isinstance(settings, ProgramSettings), "those of its study"
        if "torch" in spec.program.uses():
            # its slots import torch
            from mtdlab.trial.slots import take_gpu

            take_gpu()
        identity = json.dumps([spec.metric, spec.select_by, spec.imports, settings.model_dump()])
        if (kept := load_result(run.folder, identity)) is not None:
            run.record(kept, ["its result was kept on the disk"])
            return ()
        reports = Reports(run)
        notes = (f"called again after step {reports.furthest}",) if reports.furthest else ()
        try:
            result = _complete(spec, _call(spec, settings, run.folder / FOLDER, reports))
        except (Interrupted, StorageError):
            # a disk that fails is ignored
            with suppress(OSError):
                (run.folder / _SECONDS).write_text(f"{reports.seconds()}", encoding="utf-8")
            raise
        except NOT_ENDING:
            raise
        except BaseException as error:
            run.record(ended_early(error, reports), notes)
            return ()
        whole = replace(
            result,
            values={**result.values, "wall_seconds": reports.seconds()},
            arrays=reports.arrays("curve/step", "curve/score"),
            environment=_environment(spec),
        )
        run.heartbeat.beat()
        run.heartbeat.check()
        save_result(run.folder, whole, identity)
        run.record(whole, notes)
        return ()

    def restore(self, study: OpenStudy) -> None:
        for _, folder in study.ended():
            remove_checkpoints_of(folder)


OBJECTIVE = ProgramObjective()


class Reports(Watch):
    """`report(step, score)` of one trial: records the score, and ends the trial where asked to.

    Attributes:
        furthest: the last step that earlier calls had reported, 0 without one.
    """

    def __init__(self, run: TrialRun) -> None:
        super().__init__(run)
        self._file = run.folder / _REPORTS
        self._sign = -1.0 if is_negated(run.study.spec.metric) else 1.0
        with suppress(OSError, UnicodeDecodeError):
            for line in self._file.read_text(encoding="utf-8").splitlines(keepends=True):
                with suppress(ValueError):
                    step, score = line.split()
                    # one that was not written to its end is left out
                    if line.endswith("\n"):
                        self.reported[int(step)] = float(score)
        self.furthest = max(self.reported, default=0)
        self._before, self._start = 0.0, time.perf_counter()
        # missing, or not written to its end
        with suppress(OSError, ValueError):
            self._before = float((run.folder / _SECONDS).read_text(encoding="utf-8"))

    def __call__(self, step: int, score: float) -> None:
        """Record a score after `step` steps; negated where lower is better.

        Raises TrialError for a step or a score that is none; Interrupted, ClaimLost and
        optuna.TrialPruned end the trial.
        """
        if not is_number(score):
            kind = type(score).__name__
            raise TrialError(f"report({step!r}, ...) got a score of type {kind}; expected a number")
        if problem := too_far(f"the score after step {step!r}", score):
            raise TrialError(problem)
        number, step = self._sign * float(score), _step(step)
        self.passed(step, f"step {step:,}")
        if math.isfinite(number):
            # for the next call; a disk that fails is ignored
            with suppress(OSError), self._file.open("a", encoding="utf-8") as lines:
                lines.write(f"{self.step} {number!r}\n")
        self.evaluated(self.step, number)
        if self.step > self.furthest:
            self.reset_deaths()
        if self.run.stop.requested():
            raise Interrupted

    def seconds(self) -> float:
        """The time that the calls of the trial have taken so far, over its interruptions."""
        return self._before + time.perf_counter() - self._start


def _call(spec: ProgramSpec, settings: ProgramSettings, folder: Path, reports: Reports) -> Any:
    """What the program returns. Raises what it raises, and TrialError where it exits."""
    make_folder(folder)
    values = dict(settings.values)
    try:
        with ended_forks():
            train = spec.program.load()
            return train(values, seed=settings.seed, checkpoints=folder, report=reports)
    except SystemExit as error:
        raise TrialError(f"{spec.program.reference} called sys.exit({error.code!r})") from error


def _complete(spec: ProgramSpec, returned: Any) -> Result:
    """The result of what a program returned. Raises TrialError where these are no scores."""
    name = spec.program.reference
    origin = spec.program.module.sha256
    read = {score: as_read(score) for score in (spec.metric, spec.select_by)}
    lower = [own for score, own in read.items() if is_negated(score)]
    scores, items = own_scores(
        returned, name, RETURNS, origin, metric=read[spec.metric], lower=lower
    )
    for score, own in read.items():
        if score not in scores:
            listed = ", ".join(map(as_read, scores))
            raise TrialError(f"{name} returned no score {own}; its scores are: {listed}")
    # items of other scores are not needed
    kept = {score: scored for score, scored in items.items() if score == spec.metric}
    return Result("COMPLETE", values={"score": scores[spec.metric]}, scores=scores, items=kept)


def _step(value: Any) -> int:
    try:
        step = operator.index(value)
    except TypeError:
        step = 0
    if isinstance(value, bool) or not 1 <= step <= STEPS:
        raise TrialError(f"report({value!r}, ...): a step is a whole number from 1 to {STEPS:,}")
    return step


def _environment(spec: ProgramSpec) -> Environment:
    """The program, the processor and the versions of what it uses."""
    used = [package for name, package in _FRAMEWORKS.items() if name in spec.program.uses()]
    program = RecordedProgram(spec.program.reference, spec.program.module.sha256)
    return replace(machine((*_PACKAGES, *used)), program=program)
