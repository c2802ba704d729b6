"""The study of mtdlab's methods: what its settings are, and what a trial of it needs."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from mtdlab.config.paths import INPUTS
from mtdlab.config.search import Choices, resolve
from mtdlab.config.study import StudySpec
from mtdlab.encoders.folders import POOLINGS, declared_modes, pooling_file
from mtdlab.methods.registry import DEFAULT, describe_method, settings_class
from mtdlab.methods.user_modules import ensure_imported
from mtdlab.settings import Pooling, Setting, TrainerSettings, counted_in_steps, settings_of
from mtdlab.settings.roles import BASELINE, OF_BASELINE, SEARCH
from mtdlab.user_code import UserModule


@dataclass(frozen=True)
class MethodSpec(StudySpec):
    """A checked study whose trials mtdlab's trainer runs.

    Attributes:
        user_modules: imported modules that define methods of this study.
        encoder_pooling: the pooling that the encoder's files declare, where the file gives none:
            the default of all methods but those with a pooling of their own.
        tracking: what else training curves are written as: none or tensorboard.
    """

    trained_by: ClassVar[str] = "trainer"
    keeps_models: ClassVar[bool] = True

    user_modules: tuple[UserModule, ...] = ()
    encoder_pooling: Pooling | None = None
    tracking: str = "none"

    @property
    def methods(self) -> tuple[str, ...]:
        searched = self.search.get("method")
        if isinstance(searched, Choices):
            return searched.values
        return (str(self.trainer.get("method", DEFAULT)),)

    @property
    def known(self) -> Mapping[str, Setting]:
        return known_settings(self.methods)

    def fixed(self, method: str | None = None) -> TrainerSettings:
        """The trainer section with a method's defaults, whose values may still miss the searched.

        By default that of the first method; of several, each takes the settings that it has.
        """
        name = method or self.methods[0]
        return settings_class(name).partial({**self._given(name), "method": name})

    def settings(
        self, parameters: dict[str, Any], seed: int, role: str = SEARCH
    ) -> TrainerSettings:
        method = str(parameters.get("method", self.methods[0]))
        kind = settings_class(method)
        given = self._given(method) | self.nuisance_of(parameters)
        if role in OF_BASELINE:
            # not of the search: a searched setting that it does not give has its default
            return kind(**given | parameters | {"method": method, "seed": seed})
        resolved = resolve(
            self.search, parameters, given, lambda name, known: getattr(kind.partial(known), name)
        )
        return kind(**resolved | {"method": method, "seed": seed})

    def _given(self, method: str) -> dict[str, Any]:
        """The settings that the trainer section gives to a method, and its encoder's pooling."""
        kind = settings_class(method)
        return with_pooling(kind, given_to(kind, self.trainer), self.encoder_pooling)

    def _defaults(self, name: str) -> tuple[Any, ...]:
        return tuple({getattr(self.fixed(method), name): None for method in self.methods})

    def parameters_of(self, point: Mapping[str, Any]) -> dict[str, Any]:
        method = point.get("method")
        if method is None:
            return dict(point)
        fields = settings_class(str(method)).model_fields
        return {name: value for name, value in point.items() if name.split("/")[0] in fields}

    @property
    def imports(self) -> dict[str, str]:
        return {module.name: module.sha256 for module in self.user_modules}

    def ensure_imported(self) -> None:
        ensure_imported(self.user_modules)

    def described_methods(self) -> dict[str, Any]:
        own = () if self.baseline is None else (self.baseline.get("method", self.methods[0]),)
        return {name: describe_method(name) for name in dict.fromkeys((*self.methods, *own))}

    def _dump(self, method: str) -> dict[str, Any]:
        fixed, given = self.fixed(method), self._given(method)
        # what depends on other values of a trial is recorded as the file gives it
        of_sentences = {"steps"} if fixed.sentences or "sentences" in self.search else set[str]()
        shares = {
            name: given[name]
            for name in counted_in_steps(type(fixed)) & given.keys()
            if isinstance(given[name], float)
        }
        varied = {"seed", *self.search, *(self.nuisance.values if self.nuisance else ())}
        return fixed.model_dump(mode="json", exclude={*varied, *of_sentences}) | shares

    @property
    def always_has_queue(self) -> bool:
        """Whether every trial of the search has a queue of keys."""
        kinds = [settings_class(method).model_fields for method in self.methods]
        has_queue = all("queue_size" in fields for fields in kinds)
        return has_queue and 0 not in self.possible_values("queue_size")

    @property
    def used_pooling(self) -> Pooling | None:
        """The pooling that the encoder's files declare, where a method uses it."""
        used = {self.fixed(method).pooling for method in self.methods}
        return self.encoder_pooling if self.encoder_pooling in used else None

    def complete_identity(self, recorded: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        before, now = recorded["trainer"], new["trainer"]
        if "method" in self.search:
            both = before.keys() & now.keys()
            trainer = before | {name: _complete(before[name], now[name], name) for name in both}
        else:
            trainer = _complete(before, now, self.methods[0])
        completed = recorded | {"trainer": trainer}
        if (was := recorded.get(BASELINE)) and (beside := new.get(BASELINE)):
            completed[BASELINE] = _complete(was, beside, beside["method"])
        return completed

    def with_recorded_pooling(self, identity: dict[str, Any], trainer: Mapping[str, Any]) -> Self:
        if "pooling" in {*self.trainer, *self.search, *trainer}:
            return self
        begun = identity["trainer"]
        sections = begun if "method" in self.search else {self.methods[0]: begun}
        for method in self.methods:
            if (section := sections.get(method)) is None:
                continue  # the file has added this method
            now = self.fixed(method)
            plain = type(now).model_fields["pooling"].default
            # a version without this setting read every encoder with the default
            recorded = section.get("pooling", plain)
            if recorded != now.pooling and section.get("encoder", now.encoder) == now.encoder:
                return replace(self, encoder_pooling=None if recorded == plain else recorded)
        return self

    def warnings(self) -> list[str]:
        """Those of all studies, poolings that are not the encoder's, and queues below a batch."""
        return [*super().warnings(), *self._pooling_warnings(), *self._queue_warnings()]

    def _pooling_warnings(self) -> Iterator[str]:
        """Of a pooling that is searched, or part of a method, the choice is clear."""
        if "pooling" in self.search:
            return
        found = {}
        for settings, *_ in self.trials_by_inputs().values():
            is_own = "pooling" not in self.trainer and has_own_pooling(type(settings))
            if not is_own and settings.pooling != "mask":
                found[settings.encoder] = settings.pooling
        for encoder, pooling in found.items():
            modes = declared_modes(name := self.places.find("encoder", encoder))
            if modes and modes != [pooling]:
                has_it = len(modes) == 1 and modes[0] in POOLINGS
                other = f"set trainer.pooling to {modes[0]}, or search pooling"
                yield (
                    f"encoder {encoder} was made with {' and '.join(modes)} pooling "
                    f"({pooling_file(name)}), this study reads it with {pooling}; unless this is "
                    f"meant, {other if has_it else 'choose another encoder'}"
                )

    def _queue_warnings(self) -> Iterator[str]:
        every = [*self.configurations().values()]
        if (beside := self.baseline_settings()) is not None:
            every.append(beside.model_dump())
        sizes = {(settings.get("queue_size", 0), settings["batch_size"]) for settings in every}
        for queue, batch in sorted(sizes):
            if 0 < queue < batch:
                yield (
                    f"queue_size {queue} is below batch_size {batch}: of the {batch} keys of a "
                    f"step {queue} enter the queue, and replace all that are in it; the others are "
                    "never negatives of a later step"
                )

    def without_effect(self) -> dict[str, str]:
        return {
            name: why
            for settings in self._approximate()
            for name, why in settings.without_effect.items()
            if name in self.search
        }

    def trials_by_inputs(self) -> Mapping[tuple[str, ...], list[TrainerSettings]]:
        """The settings of the trials by method and inputs, without values relative to others.

        Of a sampled study those of all combinations of values that are no numbers: these decide
        whether an encoder fits.
        """
        found: dict[tuple[str, ...], list[TrainerSettings]] = {}
        trials = [*self._approximate()]
        if self.baseline is not None:
            trials.append(self.settings(self.baseline, self.seeds[0], BASELINE))
        for trial in trials:
            names = ("method", "encoder_name", *INPUTS)
            inputs = tuple(getattr(trial, name) for name in names)
            found.setdefault(inputs, []).append(trial)
        return found

    def _approximate(self) -> Iterator[TrainerSettings]:
        """The settings of the points of the grid, or of all values that are no numbers."""
        if self.sampler == "grid":
            points = [*self.grid_points().values()]
        else:
            named = {
                name: dimension.values
                for name, dimension in self.search.items()
                if isinstance(dimension, Choices) and not self.known[name].is_number
            }
            every = itertools.product(*named.values())
            points = [dict(zip(named, values, strict=True)) for values in every]
        fixed = {method: self.fixed(method) for method in self.methods}
        for point in points:
            values = {name: value for name, value in point.items() if "/" not in name}
            yield fixed[point.get("method", self.methods[0])].model_copy(update=values)


def _complete(recorded: dict[str, Any], new: dict[str, Any], method: str) -> dict[str, Any]:
    """A recorded section with a method's defaults of the settings that only the new one has."""
    gained = new.keys() - recorded.keys()
    return {**recorded, **settings_class(method)().model_dump(mode="json", include=gained)}


def known_settings(methods: tuple[str, ...]) -> dict[str, Setting]:
    """The settings of methods by name, each as the first method that has it declares it.

    Raises MtdlabError for an unknown method.
    """
    kinds = [settings_class(method) for method in reversed(methods)]
    return {name: setting for kind in kinds for name, setting in settings_of(kind).items()}


def given_to(kind: type[TrainerSettings], trainer: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a trainer section that a method has."""
    return {name: value for name, value in trainer.items() if name in kind.model_fields}


def with_pooling(
    kind: type[TrainerSettings], given: Mapping[str, Any], declared: Pooling | None
) -> dict[str, Any]:
    """Given settings with the pooling that an encoder declares, unless the method has its own."""
    own = declared is None or has_own_pooling(kind)
    return dict(given) if own else {**given, "pooling": declared}


def has_own_pooling(kind: type[TrainerSettings]) -> bool:
    """Whether a method's default pooling is part of the method, not that of all methods."""
    return bool(
        kind.model_fields["pooling"].default != TrainerSettings.model_fields["pooling"].default
    )
