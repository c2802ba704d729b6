"""A recorded trial, run again: is its result the same?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pydantic import ValidationError

from mtdlab.analysis.data.environment import Environment
from mtdlab.config.checks import with_evaluator
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import BUILTIN, make_settings
from mtdlab.settings import TrainerSettings, first_error
from mtdlab.settings.tasks import EVALUATOR, external_tasks, task_of
from mtdlab.store.recorded import RecordedTrial, read_recorded, read_trial, settings_of
from mtdlab.store.tables import FINISHED, living_state
from mtdlab.training.export import locked, save_model
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import OnStep, Outcome, train
from mtdlab.trial.environment import different_versions, environment_of
from mtdlab.trial.recorded_study import refuse_other_modules
from mtdlab.user_code import UserModule


@dataclass(frozen=True)
class Repeatable:
    """A trial with its settings, at the precision that it ran with, and the metric of its study."""

    study: str
    metric: str
    trial: RecordedTrial
    settings: TrainerSettings


@dataclass(frozen=True)
class Reproduction:
    """A trial's recorded result beside that of running it again.

    Attributes:
        scores: every score of the second run by name, x 100.
        identical: whether all recorded scores and the loss of every step are the same bits.
        first_step: the first step whose loss differs, from 1; None where none does, or none is
            known.
        environment: what differs between the two runs, by name: the recorded value and the present
            one, such as versions and processor.
    """

    trial: RecordedTrial
    scores: Mapping[str, float]
    identical: bool
    first_step: int | None
    environment: Mapping[str, tuple[str, str]]
    seconds: float

    @property
    def differences(self) -> dict[str, float]:
        """Second run minus recorded, in points, of each recorded score."""
        recorded = self.trial.scores
        return {name: self.scores[name] - recorded[name] for name in recorded & self.scores.keys()}


def find_repeatable(
    study: str, number: int, url: str, modules: Sequence[UserModule] = ()
) -> Repeatable:
    """A trial's recorded settings. modules: the imported ones, for a method that is not built in.

    Raises NothingToReport where study or trial is missing; MtdlabError where the trial has not
    ended, other modules were imported, or this version has no such settings; StorageError where the
    database fails.
    """
    trial, recorded = read_trial(url, study, number), read_recorded(url, study)
    state = living_state(trial.row)
    if state not in FINISHED or not trial.settings:
        raise MtdlabError(
            f"trial {number} of study {study} is {state.lower()} or was never trained; "
            "choose one that has ended"
        )
    if recorded.objective:
        raise MtdlabError(
            f"study {study} was trained by --objective {recorded.objective}; only trials of "
            "mtdlab's own trainer are reproduced"
        )
    values = {**settings_of(trial, recorded), "seed": trial.row.seed}
    built_in = values.get("method", "") in BUILTIN
    used = with_evaluator(() if built_in else tuple(modules), values)
    if not built_in or EVALUATOR in map(task_of, external_tasks(str(values.get("tasks", "")))):
        own = trial.environment.code or recorded.imports
        refuse_other_modules(study, own, {module.name: module.sha256 for module in used})
    try:
        settings = make_settings(**values)
    except ValidationError as error:
        raise MtdlabError(
            f"trial {number} of study {study} cannot be run by this version: {first_error(error)}"
        ) from None
    return Repeatable(study, recorded.metric, trial, settings)


def run_again(repeatable: Repeatable, on_step: OnStep, out: Path | None = None) -> Reproduction:
    """Train with the recorded settings and number of threads; what `on_step` raises ends it.

    The model is saved into `out`, if given. Raises TrialError where training fails, MtdlabError
    where texts, encoder or device are missing.
    """
    trial, settings, threads = repeatable.trial, repeatable.settings, torch.get_num_threads()
    # their number decides the order of sums
    torch.set_num_threads(trial.environment.threads or threads)
    try:
        inputs = load_inputs(settings)
        outcome = train(settings, inputs, on_step)
        present = environment_of(settings, inputs)
    finally:
        torch.set_num_threads(threads)
    if out is not None:
        with locked(out.absolute()):
            save_model(out, settings, inputs, outcome, present.sentences())
    metric = repeatable.metric
    scores = outcome.after.by_name() | {metric: outcome.score_of(metric)[0]}
    first_step = _first_difference(trial, outcome)
    return Reproduction(
        trial,
        {name: score for name, score in scores.items() if np.isfinite(score)},
        identical=bool(trial.scores)
        and first_step is None
        and all(scores.get(name) == score for name, score in trial.scores.items()),
        first_step=first_step,
        environment=_changed(trial.environment, present),
        seconds=outcome.wall_seconds,
    )


def _first_difference(trial: RecordedTrial, outcome: Outcome) -> int | None:
    """The first step whose loss is not the recorded one, from 1."""
    if trial.loss is None:
        return None
    again = np.asarray(outcome.curve["loss"], dtype=trial.loss.dtype)
    steps = min(len(again), len(trial.loss))
    different = np.flatnonzero(again[:steps] != trial.loss[:steps])
    return int(different[0]) + 1 if len(different) else None


def _changed(recorded: Environment, present: Environment) -> dict[str, tuple[str, str]]:
    """What is recorded and differs now; of versions only those that differ."""
    now = present.sentences()
    pairs = {name: (before, now.get(name, "")) for name, before in recorded.sentences().items()}
    if "versions" in pairs:
        pairs["versions"] = different_versions(recorded.all_versions, present.all_versions)
    return {name: (before, now) for name, (before, now) in pairs.items() if before != now}
