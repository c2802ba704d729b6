"""What a study is: fixed settings, what varies, seeds, sampler, when it ends, and its trials."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from analysis.data.defaults import ALPHA, BEYOND_RUN, MARGIN, BeyondRun
from mtdlab.config.paths import Places
from mtdlab.config.search import Choices, Dimension, Partial, fingerprint, grid, resolve
from mtdlab.config.source import Source
from mtdlab.methods.registry import DEFAULT, describe_method, settings_class
from mtdlab.methods.user_modules import ensure_imported
from mtdlab.settings import Pooling, RunSettings, Setting, TrainerSettings, settings_of
from mtdlab.settings.roles import BASELINE, SEARCH
from mtdlab.user_code import UserModule

SHARES = (0.3, 0.5, 0.7, 1.0)
"""The default looks as shares of max_seeds: 3, 5, 7 and 10 of 10."""
MOST_SEEDS = 1000


class UntilSection(BaseModel):
    """The keys of `until`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    decided: Literal[True] = Field(description="end when the verdict is decided")
    max_seeds: int = Field(ge=2, le=MOST_SEEDS, description="seeds at which it ends undecided")
    looks: list[int] | None = Field(
        default=None, min_length=1, description="numbers of seeds at which the verdict is computed"
    )


class VerdictSection(BaseModel):
    """The keys of `verdict`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    margin: float = Field(
        MARGIN, gt=0, le=100, description="points below which a difference counts as none"
    )
    alpha: float = Field(ALPHA, gt=0, le=0.5, description="error rate of a verdict")


def default_looks(max_seeds: int) -> tuple[int, ...]:
    """Looks at about 30, 50, 70 and 100 % of the seeds, none below 3 (below 2 of 2)."""
    least = min(3, max_seeds)
    return tuple(sorted({max(least, math.ceil(share * max_seeds - 1e-9)) for share in SHARES}))


def read_looks(source: Source, section: UntilSection, listed: int) -> tuple[int, ...]:
    """The looks of an `until` section, in a file that lists so many seeds.

    Raises SpecError at the place of a mistake.
    """
    if listed > section.max_seeds:
        raise source.error(
            ("until", "max_seeds"),
            f"{section.max_seeds}: the file lists {listed} seeds; raise it, or list fewer",
        )
    if section.looks is None:
        return default_looks(section.max_seeds)
    path = ("until", "looks")
    for index, look in enumerate(section.looks):
        if look < 2:
            raise source.error((*path, index), f"{look}: a look needs 2 seeds or more")
        if index and look <= section.looks[index - 1]:
            raise source.error((*path, index), f"{look}: looks are numbers of seeds that rise")
    if section.looks[-1] != section.max_seeds:
        raise source.error(
            (*path, len(section.looks) - 1),
            f"{section.looks[-1]}: the last look is at max_seeds, {section.max_seeds}",
        )
    return tuple(section.looks)


Sampler = Literal["grid", "random", "tpe", "qmc"]
Pruner = Literal["none", "median", "hyperband"]
STUDY_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


@dataclass(frozen=True)
class Unit:
    """One trial to run: a configuration with one seed, in one of the `ROLES`.

    `parameters` is None where the sampler has yet to choose them; for the baseline they are the
    settings that the study file gives it.
    """

    setting: str
    seed: int
    parameters: dict[str, Any] | None
    role: str = SEARCH

    @property
    def key(self) -> tuple[str, int]:
        """Configuration and seed, by which a trial is known in its study."""
        return self.setting, self.seed


@dataclass(frozen=True)
class StudySpec:
    """A checked study: `trainer` fixed, `search` varied, one trial per configuration and seed.

    Attributes:
        metric: the score that is reported.
        select_by: the score that ranks the trials.
        trainer: the settings that the file gives, without defaults.
        skip: partial points of the grid that are not run.
        baseline: the settings that the file gives to the configuration outside the search, over
            the trainer section; None without one.
        user_modules: imported modules that define methods of this study.
        until: the numbers of seeds at which the verdict is computed, rising up to all of `seeds`,
            of a study that adds seeds until it is decided; None for a fixed number.
        places: the folders in which relative paths of texts and models are looked up.
        encoder_pooling: the pooling that the encoder's files declare, where the file gives none:
            the default of all methods but those with a pooling of their own.
        tracking: what else training curves are written as: none or tensorboard.
        margin: points (score x 100) below which a difference counts as none in the verdict.
        alpha: error rate of the verdict, over all looks.
        beyond_run: whether levels of MTD beyond the run take part in the verdict.
        definition: the study file with its profile and --set, as `defined_study` reads it.
    """

    name: str
    metric: str
    trainer: dict[str, Any] = field(hash=False)
    search: dict[str, Dimension] = field(hash=False)
    seeds: tuple[int, ...]
    sampler: Sampler
    pruner: Pruner
    trials: int | None
    text: str
    skip: tuple[Partial, ...] = field(default=(), hash=False)
    description: str = ""
    user_modules: tuple[UserModule, ...] = ()
    select_by: str = "sts_dev"
    until: tuple[int, ...] | None = None
    margin: float = MARGIN
    alpha: float = ALPHA
    beyond_run: BeyondRun = BEYOND_RUN
    places: Places = field(default_factory=Places)
    encoder_pooling: Pooling | None = None
    tracking: str = "none"
    definition: dict[str, Any] = field(default_factory=dict, hash=False, repr=False)
    baseline: dict[str, Any] | None = field(default=None, hash=False)

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of seeds at which the verdict is computed; one without `until`."""
        return self.until or (len(self.seeds),)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that trials may use."""
        searched = self.search.get("method")
        if isinstance(searched, Choices):
            return searched.values
        return (str(self.trainer.get("method", DEFAULT)),)

    @property
    def known(self) -> Mapping[str, Setting]:
        """Every setting of the study's methods, by name."""
        return known_settings(self.methods)

    def fixed(self, method: str | None = None) -> TrainerSettings:
        """The trainer section with a method's defaults, whose values may still miss the searched.

        By default that of the first method; of several, each takes the settings that it has.
        """
        name = method or self.methods[0]
        return settings_class(name).partial({**self._given(name), "method": name})

    def possible_values(self, name: str) -> tuple[Any, ...]:
        """Every value that a setting may have in a trial; for a range, its ends."""
        searched = self.search.get(name)
        if searched is None and name in self.trainer:
            possible: tuple[Any, ...] = (self.trainer[name],)
        elif searched is None:
            possible = tuple({getattr(self.fixed(method), name): None for method in self.methods})
        elif isinstance(searched, Choices):
            possible = searched.values
        else:
            possible = (searched.low, searched.high)
        values = {} if (beside := self.baseline_settings()) is None else beside.model_dump()
        is_another = name in values and values[name] not in possible
        return (*possible, values[name]) if is_another else possible

    def settings(self, parameters: dict[str, Any], seed: int, role: str = SEARCH) -> RunSettings:
        """The settings of one trial. Raises ValueError where they do not go together."""
        return self.trainer_settings(parameters, seed, role)

    def trainer_settings(
        self, parameters: dict[str, Any], seed: int, role: str = SEARCH
    ) -> TrainerSettings:
        """The settings of one trial (`settings`) of a study that mtdlab's trainer runs."""
        method = str(parameters.get("method", self.methods[0]))
        kind, given = settings_class(method), self._given(method)
        if role == BASELINE:
            # not of the search: a searched setting that it does not give has its default
            return kind(**given | parameters | {"method": method, "seed": seed})

        def default(name: str, settings: Mapping[str, Any]) -> Any:
            return getattr(kind.partial(settings), name)

        resolved = resolve(self.search, parameters, given, default)
        return kind(**resolved | {"method": method, "seed": seed})

    def baseline_settings(self) -> RunSettings | None:
        """The settings of the baseline with the first seed; None without one."""
        if self.baseline is None:
            return None
        return self.settings(self.baseline, self.seeds[0], BASELINE)

    def _given(self, method: str) -> dict[str, Any]:
        """The settings that the trainer section gives to a method, and its encoder's pooling."""
        kind = settings_class(method)
        given = {name: value for name, value in self.trainer.items() if name in kind.model_fields}
        return with_pooling(kind, given, self.encoder_pooling)

    def parameters_of(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point of the search without the parameters of settings that its method lacks.

        Points that become equal are one configuration.
        """
        method = point.get("method")
        if method is None:
            return dict(point)
        fields = settings_class(str(method)).model_fields
        return {name: value for name, value in point.items() if name.split("/")[0] in fields}

    def units(self) -> list[Unit]:
        """Every trial of the search, in the order to run them.

        A grid goes seed by seed, so that a study cut short has run every configuration; a sampled
        study goes configuration by configuration, so that the sampler learns from all seeds.
        """
        if self.sampler == "grid":
            every = map(self.parameters_of, grid(self.search, self.skip))
            points = {fingerprint(point): point for point in every}
            return [Unit(key, seed, point) for seed in self.seeds for key, point in points.items()]
        settings = (f"sample-{index:05d}" for index in range(self.trials or 0))
        return [Unit(setting, seed, None) for setting in settings for seed in self.seeds]

    def configurations(self) -> dict[str, dict[str, Any]]:
        """Every setting of each configuration of a grid, and its mtd, by the configuration's key.

        Empty for a sampled study, whose configurations are drawn while it runs.
        """
        if self.sampler != "grid":
            return {}
        first = [unit for unit in self.units() if unit.seed == self.seeds[0]]
        every = {unit.setting: self.settings(unit.parameters or {}, unit.seed) for unit in first}
        return {
            key: {**settings.model_dump(), "mtd": settings.mtd} for key, settings in every.items()
        }

    @property
    def first_seeds(self) -> frozenset[int]:
        """The seeds up to the first look; all seeds of a study without looks."""
        return frozenset(self.seeds[: self.looks[0]])

    def first_units(self) -> list[Unit]:
        """The trials of the search up to the first look: those of its seeds."""
        return [unit for unit in self.units() if unit.seed in self.first_seeds]

    def planned_units(self) -> list[Unit]:
        """Every trial that a sweep runs, in this order: `units`, and the baseline with each seed.

        It runs after the others of its seed; in a sampled study after all others.
        """
        units = self.units()
        if self.baseline is not None:
            values = self.baseline
            units += [Unit(BASELINE, seed, values, BASELINE) for seed in self.seeds]
        if self.sampler != "grid":
            return units
        order = {seed: at for at, seed in enumerate(self.seeds)}
        return sorted(units, key=lambda unit: order[unit.seed])

    def identity(self) -> dict[str, Any]:
        """The values that identify the study; a change of them would mix two questions.

        What a grid skips is no part of it: skipping less adds trials, and skipping what is
        planned is refused trial by trial, as any other point that the file lost. A baseline may be
        added, but not changed.
        """
        grid = self.sampler == "grid"
        sections = {method: self._dump(method) for method in self.methods}
        until = {}
        if self.until:
            # the design and the error rate are fixed: they decide when it ends
            points = [unit.setting for unit in self.units() if unit.seed == self.seeds[0]]
            until = {
                "until": {"looks": list(self.looks), "seeds": list(self.seeds)},
                "verdict": {"margin": self.margin, "alpha": self.alpha},
                "beyond_run": self.beyond_run,
                "configurations": fingerprint({"settings": sorted(points)}),
            }
        beside = {}
        if (settings := self.baseline_settings()) is not None:
            # as it is recorded
            values = json.loads(json.dumps(settings.model_dump()))
            beside = {BASELINE: {name: value for name, value in values.items() if name != "seed"}}
        return (
            until
            | beside
            | {
                "metric": self.metric,
                "select_by": self.select_by,
                "sampler": self.sampler,
                "pruner": self.pruner,
                "trainer": sections if "method" in self.search else sections[self.methods[0]],
                "search": {
                    setting: "searched"
                    if grid and self.known[setting].is_number
                    else str(dimension)
                    for setting, dimension in self.search.items()
                },
            }
        )

    @property
    def imports(self) -> dict[str, str]:
        """The SHA-256 of each imported module, by its name."""
        return {module.name: module.sha256 for module in self.user_modules}

    def ensure_imported(self) -> None:
        """Import the code of the user that the study needs, in this process.

        Raises MtdlabError where it has changed since the study file was read.
        """
        ensure_imported(self.user_modules)

    def described_methods(self) -> dict[str, Any]:
        """Title and settings of each method by name, as a study records them."""
        own = () if self.baseline is None else (self.baseline.get("method", self.methods[0]),)
        return {name: describe_method(name) for name in dict.fromkeys((*self.methods, *own))}

    def _dump(self, method: str) -> dict[str, Any]:
        return self.fixed(method).model_dump(mode="json", exclude={"seed", *self.search})


def known_settings(methods: tuple[str, ...]) -> dict[str, Setting]:
    """Every setting that any of the methods has, by name.

    Raises MtdlabError for a method that is not known.
    """
    known: dict[str, Setting] = {}
    for method in methods:
        known = {**settings_of(settings_class(method)), **known}
    return known


def section(
    method: str, trainer: Mapping[str, Any], among: tuple[str, ...] = ()
) -> TrainerSettings:
    """A method's settings from a trainer section; with several methods, those that it has.

    Raises pydantic.ValidationError where a value is wrong.
    """
    kind, given = settings_class(method), dict(trainer)
    if len(among) > 1:
        given = {name: value for name, value in given.items() if name in kind.model_fields}
    return kind.partial({**given, "method": method})


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


def is_study_name(name: str) -> bool:
    """Whether a text can name a study: letters, digits, dots and dashes, at most 100."""
    return re.fullmatch(STUDY_NAME, name) is not None


def plan_of(spec: StudySpec) -> dict[str, Any]:
    """The specification of a study's verdict as it is recorded: metric, margin, alpha, looks."""
    return {
        "study": spec.name,
        "metric": spec.metric,
        "margin": spec.margin,
        "alpha": spec.alpha,
        "beyond_run": spec.beyond_run,
        "looks": list(spec.looks),
    }


def sha256_of(plan: Mapping[str, Any]) -> str:
    """The SHA-256 of a plan's JSON in UTF-8 with sorted keys, without spaces."""
    text = json.dumps(dict(plan), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
