"""A study file, read, checked and assembled: every mistake is found before anything runs.

A profile is a partial study that is laid over the file under a name of its own.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mtdlab.analysis.data.metric import as_read
from mtdlab.analysis.data.questions import Declared, QuestionError
from mtdlab.config.checks import (
    READ_BY_TRIALS,
    add_metric_task,
    check_baseline,
    check_direction,
    check_searched,
    check_study,
    check_tasks,
    check_top_level,
    check_trainer,
    check_values,
    name_negated,
    with_evaluator,
)
from mtdlab.config.method_study import MethodSpec, known_settings, with_pooling
from mtdlab.config.nuisance import NEVER, NUISANCE, PER, SEEDS, Nuisance, nuisance_values
from mtdlab.config.paths import Places, resolve_paths
from mtdlab.config.program_study import (
    ProgramSpec,
    check_program_baseline,
    check_program_top_level,
    read_program_settings,
)
from mtdlab.config.search import (
    STRATA,
    Choices,
    Dimension,
    Partial,
    StrataSection,
    read_dimension,
    read_names,
    read_skip,
    read_strata,
)
from mtdlab.config.source import OF_PROGRAM, KeyPath, Source, SpecError, parse, read
from mtdlab.config.study import StudySpec, default_looks, first_fresh_seed
from mtdlab.config.study_file import StudyFile, check_section, top_level, unknown_key
from mtdlab.encoders.folders import declared_pooling
from mtdlab.errors import MtdlabError, nearest
from mtdlab.methods.registry import BUILTIN, DEFAULT, settings_class
from mtdlab.programs import Program
from mtdlab.settings import Pooling, Setting, TrainerSettings
from mtdlab.settings.limits import PROFILES
from mtdlab.settings.roles import BASELINE
from mtdlab.user_code import UserModule

_AS_WRITTEN = ("metric", "trainer", "sampler", "pruner", "trials", "description", "beyond_run")
_Make = Callable[..., StudySpec]
"""What builds a study from the values that do not depend on what trains it."""


def build_study(
    source: Source,
    modules: Sequence[UserModule] = (),
    folder: Path | None = None,
    program: Program | None = None,
) -> StudySpec:
    """The study of a file that lies in `folder`. Raises SpecError with all of its mistakes."""
    if not isinstance(source.values, dict):
        raise source.error((), "a study file is a mapping that begins with study: NAME")
    places, top = places_of(source, folder), top_level(source)
    if program is None:
        top = add_metric_task(top)
    (check_program_top_level if program else check_top_level)(top, source)
    check_direction(top, program is not None, source)
    top = name_negated(top, of_program=program is not None)
    seeds, until = _read_seeds(top, source)
    make: _Make | None = None
    if {("trainer",), ("search",)}.isdisjoint(mistake.path for mistake in source.mistakes):
        if program:
            make = _read_program(top, program, source)
        else:
            make = _read_methods(top, modules, places, source)
    spec = None
    if make is not None and source.is_correct(*READ_BY_TRIALS):
        spec = make(
            **{name: getattr(top, name) for name in _AS_WRITTEN},
            name=top.study,
            seeds=seeds,
            text=source.text,
            until=until,
            margin=top.verdict.margin,
            alpha=top.verdict.alpha,
            places=places,
            definition=source.values,
        )
        search = spec.search
        if skip := source.try_read(lambda: read_skip(source, top.skip, search, top.sampler)):
            spec = replace(spec, skip=spec.skip + skip)
        if top.nuisance is not None and source.is_correct("select_by"):
            spec = replace(spec, nuisance=_read_nuisance(top, spec, source))
        spec = replace(spec, questions=_read_questions(top, source))
        try:
            if top.names and source.is_correct(*READ_BY_TRIALS):
                named = read_names(source, top.names, spec.search, spec.points, top.sampler)
                spec = replace(spec, names=named)
            check_study(top, spec, source)
        except ValueError as error:
            # a search that has no grid
            source.add(("search",), str(error))
    source.raise_all()
    assert spec is not None, "a study that cannot be built has a mistake"
    return spec


def _read_seeds(top: StudyFile, source: Source) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """All seeds of a study, and its looks; None without `until`."""
    seeds = source.distinct(("seeds",), top.seeds)
    if top.until is None:
        return seeds, None
    most = top.until.max_seeds
    if len(seeds) > most:
        message = f"{most}: the file lists {len(seeds)} seeds; raise it, or list fewer"
        source.add(("until", "max_seeds"), message)
    # those that are added follow the largest
    added = range(max(seeds) + 1, max(seeds) + 1 + most - len(seeds))
    return (*seeds, *added), tuple(top.until.looks or default_looks(most))


def _read_program(top: StudyFile, program: Program, source: Source) -> _Make:
    """Check the sections of a program's study."""
    known = read_program_settings(top, source)
    search, skip = _read_search(top, known, source)
    if top.baseline is not None and source.is_correct("trainer", "search"):
        check_program_baseline(top, known, search, source)
    return partial(
        ProgramSpec,
        program=program,
        named=known,
        baseline=top.baseline,
        search=search,
        skip=skip,
        # a program has no dev pairs of its own
        select_by=top.select_by if "select_by" in top.model_fields_set else top.metric,
    )


def _read_methods(
    top: StudyFile, modules: Sequence[UserModule], places: Places, source: Source
) -> _Make | None:
    """Check the sections of a study of methods; None where a method of it is not known."""
    methods = source.try_read(lambda: methods_of(source, top.trainer, top.search))
    if methods is None:
        return None
    known = known_settings(methods)
    check_trainer(top, methods, known, source)
    if source.is_correct("trainer", "metric", "select_by"):
        check_tasks(top, settings_class(methods[0]), source)
    for name in top.search:
        check_searched(name, top, known, source)
    search, skip = _read_search(top, known, source)
    for name, dimension in search.items():
        check_values(known[name], dimension, methods, source)
    baseline, of_baseline = _read_baseline(top, methods, places, source)
    is_built_in = {*methods, of_baseline} <= set(BUILTIN)
    used: tuple[UserModule, ...] = () if is_built_in else tuple(modules)
    if source.is_correct("trainer"):
        used = with_evaluator(used, top.trainer)
    return partial(
        MethodSpec,
        user_modules=used,
        encoder_pooling=encoder_pooling(top.trainer, places, search),
        tracking=top.tracking,
        baseline=baseline,
        search=search,
        skip=skip,
        select_by=top.select_by,
    )


def _read_baseline(
    top: StudyFile, methods: tuple[str, ...], places: Places, source: Source
) -> tuple[dict[str, Any] | None, str]:
    """The settings of the baseline, with its own encoder's pooling, else None; and its method."""
    given = top.baseline
    if given is None or not source.is_correct(BASELINE, "trainer"):
        return None, methods[0]
    name = given.get("method", methods[0])
    method = source.try_read(partial(_known_method, source, (BASELINE, "method"), name))
    if method is None:
        return None, methods[0]
    check_baseline(top, methods, method, source)
    kind = settings_class(method)
    if "encoder" in given and not {"pooling"} & {*given, *top.trainer}:
        plain = kind.model_fields["pooling"].default
        given = with_pooling(kind, given, encoder_pooling(given, places, {}) or plain)
    return given, method


def _read_search(
    top: StudyFile, known: Mapping[str, Setting], source: Source
) -> tuple[dict[str, Dimension], tuple[Partial, ...]]:
    """The dimensions of the entries without a mistake, and the points that strata leave out."""
    search: dict[str, Dimension] = {}
    skip: tuple[Partial, ...] = ()
    for name, written in top.search.items():
        if not source.is_correct(("search", name)):
            continue
        if name == STRATA:
            checked = partial(check_section, source, ("search", STRATA), StrataSection, written)
            given = source.try_read(checked)
            if given and (drawn := source.try_read(partial(read_strata, source, given))):
                search, skip = drawn[0] | search, drawn[1]
        else:
            read = partial(read_dimension, source, known[name], written)
            if (dimension := source.try_read(read)) is not None:
                search[name] = dimension
    return search, skip


def _read_questions(top: StudyFile, source: Source) -> tuple[Declared, ...]:
    """What the file asks, without those that have a mistake."""
    asked: list[Declared] = []
    for place, written in enumerate(top.questions):
        try:
            question = Declared.read(written)
        except QuestionError as error:
            source.add(("questions", place), str(error))
            continue
        if question in asked:
            source.add(("questions", place), "this question stands twice; keep one")
        asked.append(question)
    return tuple(asked)


def _read_nuisance(top: StudyFile, spec: StudySpec, source: Source) -> Nuisance | None:
    """The section of a study file; None where it has a mistake."""
    if spec.sampler != "grid":
        message = f"needs sampler: grid; {spec.sampler} has no configurations before it runs"
        source.add((NUISANCE,), message)
    if spec.select_by in (spec.metric, "sts_test"):
        by = as_read(spec.select_by)
        message = f"its values would be chosen by {by}, which is no score on dev data"
        source.add((NUISANCE,), f"{message}; name one under select_by")
    others = {"trainer": top.trainer, "search": top.search, BASELINE: top.baseline or {}}
    section: dict[str, Any] = source.values[NUISANCE]
    values = nuisance_values(section)
    if not values:
        example = "{learning_rate: [3e-4, 1e-3]}"
        source.add((NUISANCE,), f"name a setting and its values, as in {example}")
    for name, given in values.items():
        path = (NUISANCE, name)
        if elsewhere := [key for key, settings in others.items() if name in settings]:
            source.add(path, f"is given under {elsewhere[0]} too; take it out of one")
        elif name in NEVER:
            source.add(path, f"is not chosen for each configuration: it {NEVER[name]}")
        elif name not in spec.known:
            source.collect([source.unknown(path, spec.known, OF_PROGRAM)])
        elif not isinstance(given, list) or len({*map(repr, given)}) < 2:
            source.add(path, f"{given!r}: write a list of two values or more")
        elif wrong := [value for value in given if not isinstance(value, str | int | float)]:
            source.add(path, f"{wrong[0]!r} is not a single value")
    own = source.try_read(lambda: _read_nuisance_seeds(source, section.get(SEEDS), spec.seeds))
    per = source.try_read(lambda: _read_nuisance_per(source, section.get(PER), top.search))
    if own is None or per is None or not source.is_correct(NUISANCE):
        return None
    tried = {name: source.distinct((NUISANCE, name), given) for name, given in values.items()}
    return Nuisance(tried, own, per)


def _read_nuisance_seeds(source: Source, given: Any, seeds: Sequence[int]) -> tuple[int, ...]:
    """The seeds of the choice; by default two from the next multiple of 1,000 on."""
    if given is None:
        first = first_fresh_seed(seeds)
        return tuple(range(first, first + 2))
    path = (NUISANCE, SEEDS)
    if not isinstance(given, list) or not given or any(type(seed) is not int for seed in given):
        raise source.error(path, f"{given!r}: write a list of seeds, as in [900, 901]")
    for seed in given:
        if seed < 0:
            raise source.error(path, f"{seed}: a seed is 0 or more")
        if seed in seeds:
            raise source.error(path, f"{seed} is a seed of the study too; its own differ from all")
    return source.distinct(path, given)


def _read_nuisance_per(source: Source, given: Any, search: Mapping[str, Any]) -> tuple[str, ...]:
    names = [] if given is None else given if isinstance(given, list) else [given]
    for name in names:
        if name not in search:
            listed = ", ".join(search) or "nothing"
            raise source.error((NUISANCE, PER), f"{name!r} is not searched; search has {listed}")
    return tuple(names)


def places_of(source: Source, folder: Path | None) -> Places:
    """The folders for the relative paths of a study; those of --set are in the working folder."""
    given = (path for path, place in source.places.items() if isinstance(place, str))
    names = (str(path[1]) for path in given if path[:1] == ("trainer",) and len(path) > 1)
    return Places(folder, frozenset(names))


def encoder_pooling(
    trainer: Mapping[str, Any], places: Places, search: Mapping[str, Dimension]
) -> Pooling | None:
    """The pooling that all encoders of a study declare alike, where its file gives none."""
    if "pooling" in {*trainer, *search}:
        return None
    searched = search.get("encoder")
    named = searched.values if isinstance(searched, Choices) else [trainer.get("encoder")]
    # without one it is the built-in encoder, and a wrong one is reported elsewhere
    names = [name for name in named if isinstance(name, str) and name]
    poolings = {declared_pooling(places.find("encoder", name)) for name in names}
    return poolings.pop() if len(poolings) == 1 else None


def methods_of(source: Source, trainer: Any, search: Mapping[str, Any]) -> tuple[str, ...]:
    """The methods that a file names, fixed or searched, each of them known."""
    if "method" in search:
        given = search["method"]
        listed = given if isinstance(given, list) else [given]
        path: KeyPath = ("search", "method")
        if not listed or not all(isinstance(name, str) for name in listed):
            example = ", ".join([*BUILTIN][:2])
            raise source.error(path, f"{given!r}: write a list of methods, as in [{example}]")
        names = source.distinct(path, listed)
    else:
        path = ("trainer", "method")
        names = (trainer.get("method", DEFAULT) if isinstance(trainer, dict) else DEFAULT,)
    return tuple(_known_method(source, path, name) for name in names)


def _known_method(source: Source, path: KeyPath, name: Any) -> str:
    """The name of a method that is known. Raises SpecError at its place."""
    if not isinstance(name, str):
        raise source.error(path, f"{name!r}: write the name of a method, such as {DEFAULT}")
    try:
        settings_class(name)
    except MtdlabError as error:
        raise source.error(path, str(error)) from None
    return name


def profile_names(source: Source) -> list[str]:
    """The names under `profiles:`. Raises SpecError where one is no partial study."""
    profiles = source.values.get("profiles", {})
    if not isinstance(profiles, dict):
        raise source.error(("profiles",), f"{profiles!r}: write NAME: and what it changes")
    if len(profiles) > PROFILES:
        raise source.error(("profiles",), f"{len(profiles)} profiles; at most {PROFILES}")
    for name, changes in profiles.items():
        if not isinstance(changes, dict) or not changes:
            raise source.error(("profiles", name), "write what it changes, such as seeds: [0]")
        for key in ("study", "profiles"):
            if key in changes:
                raise source.error(("profiles", name, key), "is not for a profile to change")
    return list(profiles)


def lay_over(source: Source, name: str | None) -> Source:
    """A copy of the file with one of its profiles laid over it, or with None as it stands.

    Settings under `trainer` and `search` are replaced one by one, and null takes one away, so that
    the other section can have it. The study is then called STUDY-NAME, and what the profile gives
    keeps its place in the file. Raises SpecError for a profile that is not there.
    """
    merged = copy.deepcopy(source)
    merged.put(("profiles",), {})
    profiles = merged.values.pop("profiles", {})
    if name is None:
        return merged
    if name not in profiles:
        raise source.error(("profiles",), f"no profile {name!r}; {nearest(name, profiles)}")
    merged.profile = name
    if isinstance(merged.values.get("study"), str):
        merged.values["study"] += f"-{name}"
        merged.places["study",] = source.places["profiles", name]
    for key, value in profiles[name].items():
        section = merged.values.setdefault(key, {}) if key in ("trainer", "search") else None
        if not isinstance(section, dict) or not isinstance(value, dict):
            merged.values[key] = value
            _move(source, merged, (key,))
            continue
        for setting, given in value.items():
            _move(source, merged, (key, setting))
            if given is None and setting in section:
                del section[setting]
            elif given is None and key == "search":
                raise merged.error(("search", setting), "null takes away what the file searches")
            else:
                section[setting] = given
    return merged


def _move(source: Source, merged: Source, path: KeyPath) -> None:
    """Let the values at `path` have the places that they have in the profile."""
    said = ("profiles", merged.profile, *path)
    moved = {at[2:]: place for at, place in source.places.items() if at[: len(said)] == said}
    merged.put(path, moved)


def read_study(
    path: Path,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    modules: Sequence[UserModule] = (),
    program: Program | None = None,
) -> StudySpec:
    """Read and check a study file, with a profile and then overrides, `key=value`, laid over it.

    Raises SpecError with every mistake: file, line, column, the value, what is allowed and the
    nearest key.
    """
    source = _over(lay_over(_read_file(path, program), profile), overrides)
    return build_study(source, modules, path.parent.absolute(), program)


def parse_study(
    name: str,
    text: str,
    modules: Sequence[UserModule] = (),
    folder: Path | None = None,
    program: Program | None = None,
) -> StudySpec:
    """The study of a file's text, which errors call `name`. Raises SpecError as `read_study`."""
    return build_study(parse(name, text), modules, folder, program)


def read_settings(
    path: Path | None, overrides: Sequence[str] = (), profile: str | None = None
) -> TrainerSettings:
    """The settings of a single run: a study file's trainer section, or defaults, overridden.

    Relative paths of files that are there are replaced by those found, see `config.paths`. Raises
    SpecError as `read_study` does.
    """
    if path is None and profile is not None:
        raise SpecError(f"--profile {profile}: name the study file that it stands in")
    source = _read_file(path) if path else Source("--set", "", {})
    source = _over(lay_over(source, profile), overrides)
    unknown = [key for key in source.values if key not in StudyFile.model_fields]
    source.collect(unknown_key(source, (key,), StudyFile) for key in unknown)
    places = places_of(source, path.parent.absolute() if path else None)
    settings = source.try_read(lambda: _trainer(source, source.values.get("trainer") or {}, places))
    source.raise_all()
    assert settings is not None, "without settings there is a mistake"
    return resolve_paths(settings, places)


def _trainer(source: Source, values: Any, places: Places) -> TrainerSettings:
    model = settings_class(methods_of(source, values, {})[0])
    if isinstance(values, dict):
        values = with_pooling(model, values, encoder_pooling(values, places, {}))
    return check_section(source, ("trainer",), model, values)


def _read_file(path: Path, program: Program | None = None) -> Source:
    """A file's values. One with profiles is checked whole: a mistake in any is found at once."""
    source = read(path)
    if not isinstance(source.values, dict):
        raise SpecError(f"{path}: a study file is a mapping that begins with study: NAME")
    if names := profile_names(source):
        for name in (None, *names):
            if laid := source.try_read(partial(lay_over, source, name)):
                source.try_read(partial(build_study, laid, program=program))
        source.raise_all()
    return source


def _over(source: Source, overrides: Sequence[str]) -> Source:
    given = Source("--set", "", {})
    for assignment in overrides:
        given.try_read(partial(source.override, assignment))
    given.raise_all()
    if "profiles" in source.values:
        message = "--set comes after the profile; set the key itself, such as trainer.steps=50"
        raise source.error(("profiles",), message)
    return source
