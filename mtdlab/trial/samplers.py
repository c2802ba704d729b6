"""What Optuna decides for a study: the parameters of a configuration, and which trials are pruned.

Both are asked of a study in memory, which is filled from the record. Optuna's tables are not read.
"""

import math
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState, create_trial

from mtdlab.config.search import Choices, Dimension, grid_values, parameter_name
from mtdlab.config.study import StudySpec
from mtdlab.settings import Setting
from mtdlab.store.claims import Claim
from mtdlab.store.store import Store
from mtdlab.store.tables import FINISHED, TrialRow


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
    is_relative = bool(dimension.relative_to)
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


def ask(study: optuna.Study, spec: StudySpec) -> dict[str, Any]:
    """The parameters of the next trial: its method, which is drawn first, and only what it has."""
    trial, wanted = study.ask(), distributions(spec)
    first = {name: _suggest(trial, name, wanted[name]) for name in wanted if name == "method"}
    names = spec.parameters_of(dict.fromkeys(wanted) | first)
    return first | {name: _suggest(trial, name, wanted[name]) for name in names}


def _suggest(trial: optuna.Trial, name: str, kind: BaseDistribution) -> Any:
    if isinstance(kind, CategoricalDistribution):
        return trial.suggest_categorical(name, kind.choices)
    if isinstance(kind, IntDistribution):
        return trial.suggest_int(name, kind.low, kind.high, step=kind.step, log=kind.log)
    assert isinstance(kind, FloatDistribution), "Optuna's third kind"
    return trial.suggest_float(name, kind.low, kind.high, step=kind.step, log=kind.log)


def sobol_point(space: Mapping[str, BaseDistribution], index: int) -> dict[str, Any]:
    """The parameters of configuration `index` of the sampler `qmc`, from 1: 0 is drawn at random.

    They are those of Optuna's QMCSampler. It keeps its position in the sequence in the study, where
    two workers that draw at once may find the same one.
    """
    # its import takes half a second, and other samplers do without
    from scipy.stats.qmc import Sobol

    # seed, as Optuna: rng is another sequence
    engine = Sobol(len(space), seed=0)
    if index > 1:
        engine.fast_forward(index - 1)
    fractions = zip(space, engine.random(1)[0].tolist(), strict=True)
    return {name: _value_at(space[name], fraction) for name, fraction in fractions}


def _value_at(kind: BaseDistribution, fraction: float) -> Any:
    """The value at a fraction, 0 to below 1, of the range of a distribution."""
    if isinstance(kind, CategoricalDistribution):
        return kind.choices[int(fraction * len(kind.choices))]
    assert isinstance(kind, FloatDistribution | IntDistribution), "Optuna's other kinds"
    low, high, half = kind.low, kind.high, (kind.step or 0) / 2
    if low == high:
        return low
    # each value on a raster has an equal part of the range
    ends = (low - half, high + half)
    lowest, highest = map(math.log, ends) if kind.log else ends
    found = lowest + fraction * (highest - lowest)
    found = math.exp(found) if kind.log else found
    if kind.step is None:
        return min(max(found, low), math.nextafter(high, low))
    return min(max(math.floor((found - low) / kind.step + 0.5) * kind.step + low, low), high)


PRUNERS: Mapping[str, type[optuna.pruners.BasePruner]] = {
    "none": optuna.pruners.NopPruner,
    "median": optuna.pruners.MedianPruner,
    "hyperband": optuna.pruners.HyperbandPruner,
}


class OptunaStudy:
    """A study as Optuna sees it: in memory, with the trials of the search as they are recorded.

    A draw depends on the record and on the configuration's index in the study, not on which of
    several workers makes it. A grid without a pruner never reads the trials.
    """

    def __init__(self, spec: StudySpec, store: Store) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._spec, self._store, self._space = spec, store, distributions(spec)
        self._start()

    def _start(self) -> None:
        self._storage = InMemoryStorage()
        self._study = optuna.create_study(
            storage=self._storage, study_name=self._spec.name, direction="maximize"
        )
        self._id = self._storage.get_study_id_from_name(self._spec.name)
        self._count, self._unended = 0, dict[int, int]()

    def draw(self, claim: Claim) -> dict[str, Any]:
        """The parameters of a configuration, by the study's sampler. May raise StorageError."""
        index = int(claim.configuration.rpartition("-")[2])
        if self._spec.sampler == "tpe":
            if claim.number < self._count:
                # another process had claimed it, and died before it had drawn
                self._start()
            self._follow(drawn=claim.number)
            self._study.sampler = optuna.samplers.TPESampler(seed=index)
            return ask(self._study, self._spec)
        if self._spec.sampler == "qmc" and index:
            return self._spec.parameters_of(sobol_point(self._space, index))
        sampler = optuna.samplers.RandomSampler(seed=index)
        return ask(optuna.create_study(sampler=sampler), self._spec)

    def report(self, claim: Claim, step: int, score: float) -> bool:
        """Record a score for the pruner; whether it ends the trial. May raise StorageError."""
        self._follow()
        if (trial := self._unended.get(claim.number)) is None:
            return False  # another process has it, and has ended it
        self._storage.set_trial_intermediate_value(trial, step, score)
        is_pruned = PRUNERS[self._spec.pruner]().prune(self._study, self._storage.get_trial(trial))
        attributes = self._storage.get_trial(trial).system_attrs
        self._store.report(claim, step, score, attributes)
        return is_pruned

    def _follow(self, drawn: int | None = None) -> None:
        """Bring the study in memory to the record; trial `drawn` is the one to be asked for.

        TPE counts the parameters of running trials as bad ones, so that workers that draw at once
        do not draw the same ("constant liar"). A trial that waits again, since its process has
        ended, keeps its parameters and counts as running.
        """
        searched = self._store.searched(self._count, self._unended)
        rows = {row.number: (row, ranking) for row, ranking in searched if row.number is not None}
        known, self._count = self._count, max([self._count, *(number + 1 for number in rows)])
        for number in range(known, self._count):
            template = create_trial(state=TrialState.WAITING) if number == drawn else None
            self._unended[number] = self._storage.create_new_trial(self._id, template)
        for number, trial in list(self._unended.items()):
            # none: a trial of the baseline, or one that failed and has a new number
            state, values = "FAIL", None
            if number in rows:
                row, ranking = rows[number]
                self._write(trial, row)
                state = row.state
                if state == "COMPLETE" and ranking is not None:
                    values = [ranking]
            if state in FINISHED:
                self._storage.set_trial_state_values(trial, TrialState[state], values)
                del self._unended[number]

    def _write(self, trial: int, row: TrialRow) -> None:
        """Write what is recorded of a trial that has not ended in memory."""
        if self._spec.sampler == "tpe":
            for name, value in (row.parameters or {}).items():
                kind = self._space[name]
                self._storage.set_trial_param(trial, name, kind.to_internal_repr(value), kind)
        for step, score in row.reported.items():
            self._storage.set_trial_intermediate_value(trial, step, score)
        for key, value in (row.attributes or {}).items():
            self._storage.set_trial_system_attr(trial, key, value)
