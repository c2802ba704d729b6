"""What a study is: fixed settings, what varies, seeds, sampler, when it ends, and its trials."""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from mtdlab.analysis.data.beyond_run import describe_lengths
from mtdlab.analysis.data.defaults import ALPHA, BEYOND_RUN, MARGIN, BeyondRun
from mtdlab.analysis.data.questions import ANY, Declared, PlannedQuestion, derive
from mtdlab.config.nuisance import NUISANCE, Choice, Nuisance
from mtdlab.config.paths import Places
from mtdlab.config.search import Choices, Dimension, Partial, fingerprint, grid
from mtdlab.settings import RunSettings, Setting
from mtdlab.settings.roles import BASELINE, BASELINE_NUISANCE, OF_NUISANCE, SEARCH, SEARCH_NUISANCE


class UntilSection(BaseModel, frozen=True, extra="forbid", strict=True):
    """The keys of `until`."""

    decided: Literal[True] = Field(description="end when the verdict is decided")
    max_seeds: int = Field(ge=2, le=1000, description="seeds at which it ends undecided")
    looks: list[Annotated[int, Field(ge=2)]] | None = Field(
        default=None, min_length=1, description="numbers of seeds at which the verdict is computed"
    )

    @field_validator("looks")
    @classmethod
    def _check_looks(cls, looks: list[int] | None, known: ValidationInfo) -> list[int] | None:
        most = known.data.get("max_seeds")
        if looks and most and (looks != sorted({*looks}) or looks[-1] != most):
            raise ValueError(f"{looks}: looks are numbers of seeds that rise to max_seeds, {most}")
        return looks


class VerdictSection(BaseModel, frozen=True, extra="forbid", strict=True):
    """The keys of `verdict`."""

    margin: float = Field(
        MARGIN,
        gt=0,
        le=1e30,
        description="difference that counts as none, in points or the score's own unit",
    )
    alpha: float = Field(ALPHA, gt=0, le=0.5, description="error rate of a verdict")


def default_looks(max_seeds: int) -> tuple[int, ...]:
    """Looks at about 30, 50, 70 and 100 % of the seeds, none below 3 (below 2 of 2)."""
    least = min(3, max_seeds)
    return tuple(
        sorted({max(least, math.ceil(share * max_seeds - 1e-9)) for share in (0.3, 0.5, 0.7, 1)})
    )


def first_fresh_seed(seeds: Iterable[int]) -> int:
    """The next multiple of 1,000 above all seeds, from which fresh ones begin."""
    return 1000 * (max(seeds) // 1000 + 1)


SEARCHED = "searched"
"""What the identity of a grid has for each setting that it searches."""
Sampler = Literal["grid", "random", "tpe", "qmc"]
Pruner = Literal["none", "median", "hyperband"]


@dataclass(frozen=True)
class PlannedTrial:
    """One trial to run: a configuration with one seed, in one of the `ROLES`.

    `parameters` is None where the sampler has yet to choose them; for the baseline they are the
    settings that the study file gives it.
    """

    configuration: str
    seed: int
    parameters: dict[str, Any] | None
    role: str = SEARCH

    @property
    def key(self) -> tuple[str, int]:
        """Configuration and seed, by which a trial is known in its study."""
        return self.configuration, self.seed


@dataclass(frozen=True)
class StudySpec(ABC):
    """A checked study: `trainer` fixed, `search` varied, one trial per configuration and seed.

    Attributes:
        trained_by: the name of what trains its trials, see `mtdlab.trial.study`.
        keeps_models: whether the best trial's model is kept, and may be shared.
        unknown_cost: why the cost of a trial is not known before one has run; empty where it is.
        metric: the score that is reported.
        select_by: the score that ranks the trials.
        trainer: the settings that the file gives, without defaults.
        skip: partial points of the grid that are not run.
        names: what configurations are called, by their key.
        baseline: the settings that the file gives to the configuration outside the search, over
            the trainer section; None without one.
        until: the numbers of seeds at which the verdict is computed, rising up to all of `seeds`,
            of a study that adds seeds until it is decided; None for a fixed number.
        places: the folders in which relative paths of texts and models are looked up.
        margin: the difference that counts as none in the verdict, in the unit of the score.
        alpha: error rate of the verdict, over all looks.
        beyond_run: whether levels of MTD beyond the run take part in the verdict.
        definition: the study file with its profile and --set, as `build_study` reads it.
        questions: what the file asks, the main question first; empty: it follows from what varies.
        nuisance: the settings whose value is chosen for each configuration; None without any.
        nuisance_choice: their chosen values; None before the choice, and without such a setting.
    """

    trained_by: ClassVar[str]
    keeps_models: ClassVar[bool]
    unknown_cost: ClassVar[str] = ""

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
    names: Mapping[str, str] = field(default_factory=dict, hash=False)
    description: str = ""
    select_by: str = "sts_dev"
    until: tuple[int, ...] | None = None
    margin: float = MARGIN
    alpha: float = ALPHA
    beyond_run: BeyondRun = BEYOND_RUN
    places: Places = field(default_factory=Places)
    definition: dict[str, Any] = field(default_factory=dict, hash=False, repr=False)
    baseline: dict[str, Any] | None = field(default=None, hash=False)
    questions: tuple[Declared, ...] = ()
    nuisance: Nuisance | None = None
    nuisance_choice: Choice | None = field(default=None, hash=False)

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of seeds at which the verdict is computed; one without `until`."""
        return self.until or (len(self.seeds),)

    @property
    @abstractmethod
    def methods(self) -> tuple[str, ...]:
        """The methods that trials may use; a program stands for one in what is recorded."""

    @property
    @abstractmethod
    def known(self) -> Mapping[str, Setting]:
        """Every setting of the study, by name."""

    @property
    @abstractmethod
    def imports(self) -> dict[str, str]:
        """The SHA-256 of each module that defines what the trials run, by its name."""

    @abstractmethod
    def ensure_imported(self) -> None:
        """Import the study's code of the user. Raises MtdlabError where it has changed since."""

    @abstractmethod
    def described_methods(self) -> dict[str, Any]:
        """Title and settings of each of its methods by name, as a study records them."""

    @abstractmethod
    def parameters_of(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point without settings that its method lacks; equal points are one configuration."""

    @abstractmethod
    def _dump(self, method: str) -> dict[str, Any]:
        """The fixed settings of a method, as they identify the study."""

    def _defaults(self, name: str) -> tuple[Any, ...]:  # noqa: ARG002
        """The values of a setting that the file does not name."""
        return ()

    @classmethod
    def of(cls, spec: "StudySpec") -> Self:
        """The study as one of this kind. Raises TypeError where it is of another."""
        if isinstance(spec, cls):
            return spec
        raise TypeError(f"study {spec.name} is a {type(spec).__name__}, not a {cls.__name__}")

    # what differs between studies of methods and of programs, as it is for a program

    def without_effect(self) -> dict[str, str]:
        """The searched settings that change nothing in some trials, and by which value."""
        return {}

    def warnings(self) -> list[str]:
        """A sentence for each setting that may not be meant, such as a history beyond the run."""
        return list(describe_lengths(self.configurations().values(), self.beyond_run))

    def complete_identity(self, recorded: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """A recorded identity with the defaults of settings that its methods have gained since."""
        return recorded

    def with_recorded_pooling(self, identity: dict[str, Any], trainer: Mapping[str, Any]) -> Self:  # noqa: ARG002
        """The study with the pooling that it was begun with, where its file gives none."""
        return self

    def possible_values(self, name: str) -> tuple[Any, ...]:
        """Every value that a setting may have in a trial; for a range, its ends."""
        searched = self.search.get(name)
        if self.nuisance is not None and name in self.nuisance.values:
            possible: tuple[Any, ...] = self.nuisance.values[name]
        elif searched is None and name in self.trainer:
            possible = (self.trainer[name],)
        elif searched is None:
            possible = self._defaults(name)
        elif isinstance(searched, Choices):
            possible = searched.values
        else:
            possible = (searched.low, searched.high)
        values = {} if (beside := self.baseline_settings()) is None else beside.model_dump()
        is_another = name in values and values[name] not in possible
        return (*possible, values[name]) if is_another else possible

    @abstractmethod
    def settings(self, parameters: dict[str, Any], seed: int, role: str = SEARCH) -> RunSettings:
        """The settings of one trial. Raises ValueError where they do not go together."""

    def baseline_settings(self) -> RunSettings | None:
        """The settings of the baseline with the first seed, before a choice; None without one."""
        if self.baseline is None:
            return None
        return self.settings(self.baseline, self.seeds[0], BASELINE)

    def nuisance_of(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The values of nuisance settings among the parameters of a trial."""
        names = () if self.nuisance is None else self.nuisance.values
        return {name: parameters[name] for name in names if name in parameters}

    def _choice(self, configuration: str, parameters: dict[str, Any], role: str) -> dict[str, Any]:
        """The chosen values of a configuration; none before the choice."""
        if self.nuisance is None or not self.nuisance_choice:
            return {}
        return dict(self.nuisance_choice.get(self._group(configuration, parameters, role), {}))

    def _group(self, configuration: str, parameters: dict[str, Any], role: str) -> str:
        """The group of a configuration, whose members share a choice; its own without `per`."""
        assert self.nuisance is not None
        if not self.nuisance.per:
            return configuration
        settings = self.settings(parameters, self.seeds[0], role).model_dump()
        return fingerprint({name: settings.get(name) for name in self.nuisance.per})

    def nuisance_trials(self) -> list[PlannedTrial]:
        """The trials, seed by seed, that choose nuisance values: GROUP.CONFIGURATION.VALUES."""
        if self.nuisance is None:
            return []
        of = {SEARCH_NUISANCE: self.points()}
        if self.baseline is not None:
            of[BASELINE_NUISANCE] = {BASELINE: self.baseline}
        named = [
            (f"{self._group(key, point, role)}.{key}.{fingerprint(values)}", point | values, role)
            for role, points in of.items()
            for key, point in points.items()
            for values in self.nuisance.candidates()
        ]
        return [
            PlannedTrial(name, seed, parameters, role)
            for seed in self.nuisance.seeds
            for name, parameters, role in named
        ]

    def points(self) -> dict[str, dict[str, Any]]:
        """The points of the grid by the configuration's key, without nuisance settings."""
        every = map(self.parameters_of, grid(self.search, self.skip))
        return {fingerprint(point): point for point in every}

    def grid_points(self) -> dict[str, dict[str, Any]]:
        """The points of the grid by the configuration's key, with what is chosen for each."""
        return {
            key: point | self._choice(key, point, SEARCH) for key, point in self.points().items()
        }

    def search_trials(self) -> list[PlannedTrial]:
        """Every trial of the search, in the order to run them.

        A grid goes seed by seed, so that a study cut short has run every configuration; a sampled
        study goes configuration by configuration, so that the sampler learns from all seeds.
        """
        if self.sampler == "grid":
            points = self.grid_points().items()
            return [PlannedTrial(key, seed, point) for seed in self.seeds for key, point in points]
        names = (f"sample-{index:05d}" for index in range(self.trials or 0))
        return [PlannedTrial(name, seed, None) for name in names for seed in self.seeds]

    def configurations(self) -> dict[str, dict[str, Any]]:
        """Every setting and the mtd of each configuration of a grid, by its key; else none.

        Where the file names configurations, their names are there too.
        """
        found = {}
        for key, point in self.grid_points().items() if self.sampler == "grid" else ():
            settings = self.settings(point, self.seeds[0])
            found[key] = {**settings.model_dump(), "mtd": settings.mtd}
            if self.names:
                found[key][ANY] = self.names.get(key)
        return found

    def planned_question(self) -> PlannedQuestion:
        """The main question: the first of the file, else the one that follows from what varies."""
        rows = [*self.configurations().values()]
        names = () if self.nuisance is None else (*self.nuisance.values,)
        asked = self.questions[0] if self.questions else derive(rows, names)
        return PlannedQuestion(asked, rows, self.search, self.beyond_run)

    @property
    def first_seeds(self) -> frozenset[int]:
        """The seeds up to the first look; all seeds of a study without looks."""
        return frozenset(self.seeds[: self.looks[0]])

    def planned_trials(self) -> list[PlannedTrial]:
        """Every trial that a sweep runs, in order: those of the search, and the baseline by seed.

        It runs after the others of its seed; in a sampled study after all others. The trials of a
        choice come first; what follows from it is in the others once it is made.
        """
        trials = self.search_trials()
        if self.baseline is not None:
            values = self.baseline | self._choice(BASELINE, self.baseline, BASELINE)
            trials += [PlannedTrial(BASELINE, seed, values, BASELINE) for seed in self.seeds]
        if self.sampler != "grid":
            return trials
        order = {seed: at for at, seed in enumerate(self.seeds)}
        return self.nuisance_trials() + sorted(trials, key=lambda trial: order[trial.seed])

    @property
    def unchosen_groups(self) -> set[str]:
        """The groups of configurations whose values of nuisance settings are not chosen yet."""
        groups = {trial.configuration.split(".")[0] for trial in self.nuisance_trials()}
        return groups - (self.nuisance_choice or {}).keys()

    def begins_with(self, trial: PlannedTrial, seeds: Set[int] = frozenset()) -> bool:
        """Whether a sweep plans a trial before the first look, as far as choices are made.

        `seeds` are those that are recorded: the baseline runs with all of the search. A group that
        has its choice runs no further trials to choose by, also where it has grown.
        """
        if trial.role in OF_NUISANCE:
            return trial.configuration.split(".")[0] not in (self.nuisance_choice or {})
        is_due = trial.seed in self.first_seeds or (trial.role == BASELINE and trial.seed in seeds)
        return is_due and self.is_chosen(trial)

    def is_chosen(self, trial: PlannedTrial) -> bool:
        """Whether what is compared has its values of the nuisance settings."""
        names = () if self.nuisance is None else self.nuisance.values
        return all(name in (trial.parameters or {}) for name in names)

    def identity(self) -> dict[str, Any]:
        """The values that identify the study; a change of them would mix two questions.

        The points of a grid are no part of it: a value more, or a point less that is skipped, adds
        trials, and what the file has lost is refused trial by trial. A baseline and methods may be
        added, but not changed.
        """
        grid = self.sampler == "grid"
        sections = {method: self._dump(method) for method in self.methods}
        identity: dict[str, Any] = {}
        if self.until:
            # the design and the error rate are fixed: they decide when it ends
            identity |= {
                "until": {"looks": list(self.looks), "seeds": list(self.seeds)},
                "verdict": {"margin": self.margin, "alpha": self.alpha},
                "beyond_run": self.beyond_run,
                "configurations": fingerprint({"settings": sorted(self.points())}),
                **self._declared(),
            }
        if (beside := self.baseline_settings()) is not None:
            # as it is recorded
            identity[BASELINE] = json.loads(json.dumps(beside.model_dump()))
            del identity[BASELINE]["seed"]
        if self.nuisance is not None:
            identity[NUISANCE] = self.nuisance.identity()
        search = {
            setting: SEARCHED if grid else str(dimension)
            for setting, dimension in self.search.items()
        }
        return identity | {
            "metric": self.metric,
            "select_by": self.select_by,
            "sampler": self.sampler,
            "pruner": self.pruner,
            "trainer": sections if "method" in self.search else sections[self.methods[0]],
            "search": search,
        }

    def _declared(self) -> dict[str, Any]:
        """The questions as they identify the study; none where they say what follows anyway."""
        asked = [question.write() for question in self.questions]
        derived = replace(self, questions=()).planned_question().asked
        return {} if asked in ([], [derived.write()]) else {"questions": asked}


def plan_of(spec: StudySpec) -> dict[str, Any]:
    """What a study's answers are judged by, as it is recorded, with the questions it states."""
    asked = [question.write() for question in spec.questions]
    about = {name for question in spec.questions for name in question.names}
    points = spec.points() if spec.names else {}
    named = {name: points[key] for key, name in spec.names.items() if name in about}
    stated = {"questions": asked, "named": named}
    return {key: value for key, value in stated.items() if value} | {
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
