"""A study's search space, sampler and pruner as Optuna's objects."""

import warnings
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    _get_single_value,
)
from optuna.pruners import _filter_study
from optuna.trial import TrialState, create_trial

from mtdlab.config import StudySpec
from mtdlab.config.search import Choices, Dimension, grid_values, parameter_name
from mtdlab.settings import Setting


def distributions(spec: StudySpec) -> dict[str, BaseDistribution]:
    """Each searched parameter's distribution."""
    kind = _along_grid if spec.sampler == "grid" else _drawn
    return {
        parameter_name(setting, dimension): kind(spec.known[setting], dimension)
        for setting, dimension in spec.search.items()
    }


def _along_grid(setting: Setting, dimension: Dimension) -> BaseDistribution:
    """The range of a grid's numbers: unlike choices, Optuna accepts a range that grows."""
    values = grid_values(setting.name, dimension)
    is_relative = isinstance(dimension, Choices) and bool(dimension.relative_to)
    if not is_relative and not setting.is_number:
        return CategoricalDistribution(values)
    kind = IntDistribution if setting.is_integer and not is_relative else FloatDistribution
    return kind(min(values), max(values))


def _drawn(_setting: Setting, dimension: Dimension) -> BaseDistribution:
    if isinstance(dimension, Choices):
        return CategoricalDistribution(dimension.values)
    low, high, log, step = dimension.low, dimension.high, dimension.log, dimension.step
    if dimension.integer:
        return IntDistribution(int(low), int(high), log=log, step=int(step or 1))
    return FloatDistribution(low, high, log=log, step=step)


def draw(
    study: optuna.Study, number: int, drawing: optuna.samplers.BaseSampler, spec: StudySpec
) -> dict[str, Any]:
    """Draw the parameters of trial `number` from the trials of `study` that have ended.

    As `Study.ask`, which would record a trial. The method is drawn first, then only what it has.
    """
    trial, wanted = create_trial(state=TrialState.RUNNING), distributions(spec)
    trial.number = number
    compared = _filter_study(study, trial)
    compared._storage = _ReadOnly(study._storage)  # type: ignore[assignment]
    drawing.before_trial(compared, trial)
    space = drawing.infer_relative_search_space(compared, trial)
    relative = drawing.sample_relative(compared, trial, space)

    def value(name: str) -> Any:
        if wanted[name].single():
            return _get_single_value(wanted[name])
        if name in relative:
            return relative[name]
        return drawing.sample_independent(compared, trial, name, wanted[name])

    values = {"method": value("method")} if "method" in wanted else {}
    names = spec.parameters_of(dict.fromkeys(wanted) | values)
    return values | {name: value(name) for name in names if name not in values}


class _ReadOnly:
    """A storage in which a trial that is only being drawn is not looked for."""

    def __init__(self, storage: optuna.storages.BaseStorage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """TPE records what it draws for other workers; the trial's copy has it when it begins."""


def sampler(spec: StudySpec, setting: str) -> optuna.samplers.BaseSampler:
    """The sampler that draws one configuration.

    Its seed is the configuration's index in the study, so that a draw does not depend on which
    of several workers makes it. QMC is one sequence, whose position Optuna keeps in the study.
    """
    index = int(setting.rpartition("-")[2]) if spec.sampler != "grid" else 0
    if spec.sampler == "tpe":
        return optuna.samplers.TPESampler(seed=index)
    if spec.sampler == "qmc":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return optuna.samplers.QMCSampler(seed=0, scramble=True)
    return optuna.samplers.RandomSampler(seed=index)


def pruner(spec: StudySpec) -> optuna.pruners.BasePruner:
    """The study's pruner."""
    if spec.pruner == "median":
        return optuna.pruners.MedianPruner()
    if spec.pruner == "hyperband":
        return optuna.pruners.HyperbandPruner()
    return optuna.pruners.NopPruner()
