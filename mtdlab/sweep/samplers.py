"""A study's search space, sampler and pruner as Optuna's objects."""

import warnings

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

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
    if isinstance(dimension, Choices) and dimension.relative_to:
        return FloatDistribution(min(values), max(values))
    if setting.is_integer:
        return IntDistribution(min(values), max(values))
    if setting.is_number:
        return FloatDistribution(min(values), max(values))
    return CategoricalDistribution(values)


def _drawn(_setting: Setting, dimension: Dimension) -> BaseDistribution:
    if isinstance(dimension, Choices):
        return CategoricalDistribution(dimension.values)
    low, high, log, step = dimension.low, dimension.high, dimension.log, dimension.step
    if dimension.integer:
        return IntDistribution(int(low), int(high), log=log, step=int(step or 1))
    return FloatDistribution(low, high, log=log, step=step)


def suggest(trial: optuna.Trial, spec: StudySpec) -> dict[str, object]:
    """Draw a value for each parameter from the trial's sampler.

    The method is drawn first, then only what it has.
    """
    wanted = distributions(spec)
    values: dict[str, object] = {}
    if (methods := wanted.pop("method", None)) is not None:
        values["method"] = _suggested(trial, "method", methods)
    for name in spec.parameters_of(values | dict.fromkeys(wanted)):
        if name in wanted:
            values[name] = _suggested(trial, name, wanted[name])
    return values


def _suggested(trial: optuna.Trial, name: str, kind: BaseDistribution) -> object:
    if isinstance(kind, IntDistribution):
        return trial.suggest_int(name, kind.low, kind.high, step=kind.step, log=kind.log)
    if isinstance(kind, FloatDistribution):
        return trial.suggest_float(name, kind.low, kind.high, step=kind.step, log=kind.log)
    assert isinstance(kind, CategoricalDistribution), "the third of Optuna's three kinds"
    return trial.suggest_categorical(name, kind.choices)


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
