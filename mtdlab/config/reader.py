"""A study file, read, checked and assembled: every mistake is found before anything runs.

A profile is a partial study that is laid over the file under a name of its own.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mtdlab.config.checks import (
    READ_BY_TRIALS,
    add_metric_task,
    check_baseline,
    check_searched,
    check_study,
    check_tasks,
    check_top_level,
    check_trainer,
    check_values,
    with_evaluator,
)
from mtdlab.config.method_study import MethodSpec, known_settings, with_pooling
from mtdlab.config.nuisance import NUISANCE, Nuisance, read_nuisance
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
    read_dimension,
    read_skip,
    read_strata,
)
from mtdlab.config.source import KeyPath, Mistakes, Source, SpecError, parse, read
from mtdlab.config.study import (
    StudySpec,
    UntilSection,
    VerdictSection,
    read_looks,
)
from mtdlab.config.study_file import StudyFile, check_section, top_level, unknown_key
from mtdlab.encoders.folders import declared_pooling
from mtdlab.errors import MtdlabError, nearest
from mtdlab.methods.registry import BUILTIN, DEFAULT, settings_class
from mtdlab.programs import Program
from mtdlab.settings import Pooling, Setting, TrainerSettings
from mtdlab.settings.limits import PROFILES
from mtdlab.settings.roles import BASELINE
from mtdlab.user_code import UserModule

_AS_WRITTEN = (
    *("metric", "trainer", "sampler", "pruner", "trials", "description"),
    "beyond_run",
)
_Sections = tuple[Callable[..., StudySpec], dict[str, Dimension], tuple[Partial, ...]]
"""The function that builds the study, the dimensions of its search, and the points left out."""


def build_study(
    source: Source,
    modules: Sequence[UserModule] = (),
    folder: Path | None = None,
    program: Program | None = None,
) -> StudySpec:
    """The study that a file describes. Raises SpecError with all of its mistakes.

    Args:
        program: the program that trains its trials in place of mtdlab's trainer.
    """
    if not isinstance(source.values, dict):
        raise source.error((), "a study file is a mapping that begins with study: NAME")
    mistakes, spec, given = Mistakes(source), None, "select_by" in source.values
    places = places_of(source, folder)
    top = top_level(source, mistakes)
    if program is None:
        top = add_metric_task(top)
    (check_program_top_level if program else check_top_level)(top, mistakes)
    verdict = mistakes.attempt(
        lambda: check_section(source, ("verdict",), VerdictSection, top.verdict)
    )
    until, seeds = _read_until(top, mistakes), tuple(dict.fromkeys(top.seeds))
    if until:
        # those that are added follow the largest
        first = max(seeds) + 1
        seeds += tuple(range(first, first + until[-1] - len(seeds)))
    sections = None
    if mistakes.readable(("trainer",), ("search",)):
        sections = _read_sections(top, modules, program, places, mistakes)
    if sections is not None and verdict is not None and mistakes.sound(*READ_BY_TRIALS):
        make, search, left_out = sections
        skip = mistakes.attempt(lambda: read_skip(source, top.skip, search, top.sampler))
        spec = make(
            **{name: getattr(top, name) for name in _AS_WRITTEN},
            name=top.study,
            # a program has no dev pairs of its own
            select_by=top.select_by if given or program is None else top.metric,
            search=search,
            seeds=seeds,
            text=source.text,
            skip=left_out + (skip or ()),
            until=until,
            margin=verdict.margin,
            alpha=verdict.alpha,
            places=places,
            definition=source.values,
        )
        if top.nuisance is not None and mistakes.sound(("select_by",)):
            spec = replace(spec, nuisance=_read_nuisance(top, spec, mistakes))
        try:
            check_study(top, spec, mistakes)
        except ValueError as error:
            # a search that has no grid
            mistakes.add(("search",), str(error))
    mistakes.raise_all()
    assert spec is not None, "a study that cannot be built has a mistake"
    return spec


def _read_nuisance(top: StudyFile, spec: StudySpec, mistakes: Mistakes) -> Nuisance | None:
    """The nuisance settings of a study whose grid is compared by another score than chooses them.

    None where the section has a mistake.
    """
    if spec.sampler != "grid":
        message = f"needs sampler: grid; {spec.sampler} has no configurations before it runs"
        mistakes.add((NUISANCE,), message)
    if spec.select_by in (spec.metric, "sts_test"):
        message = f"its values would be chosen by {spec.select_by}, which is no score on dev data"
        mistakes.add((NUISANCE,), f"{message}; name one under select_by")
    others = {"trainer": top.trainer, "search": top.search, BASELINE: top.baseline or {}}
    return read_nuisance(mistakes, spec.seeds, spec.known, others)


def _read_until(top: StudyFile, mistakes: Mistakes) -> tuple[int, ...] | None:
    if top.until is None:
        return None
    section = mistakes.attempt(
        lambda: check_section(mistakes.source, ("until",), UntilSection, top.until)
    )
    if section is None or not mistakes.sound(("seeds",)):
        return None
    return mistakes.attempt(lambda: read_looks(mistakes.source, section, len({*top.seeds})))


def _read_sections(
    top: StudyFile,
    modules: Sequence[UserModule],
    program: Program | None,
    places: Places,
    mistakes: Mistakes,
) -> _Sections | None:
    """Check the sections trainer and search; None where no method of the study is known."""
    if program is not None:
        known = read_program_settings(top, mistakes)
        search, left_out = read_search(top, known, mistakes)
        if top.baseline is not None and mistakes.sound(("trainer",), ("search",)):
            check_program_baseline(top, known, search, mistakes)
        of_program = partial(ProgramSpec, program=program, named=known, baseline=top.baseline)
        return of_program, search, left_out
    methods = mistakes.attempt(lambda: methods_of(mistakes.source, top.trainer, top.search))
    if methods is None:
        return None
    known = known_settings(methods)
    check_trainer(top, methods, known, mistakes)
    if mistakes.sound(("trainer",), ("metric",), ("select_by",)):
        check_tasks(top, methods, mistakes)
    for name in top.search:
        check_searched(name, top, known, mistakes)
    search, left_out = read_search(top, known, mistakes)
    for name, dimension in search.items():
        check_values(known[name], dimension, methods, mistakes)
    baseline, of_baseline = _read_baseline(top, methods, places, mistakes)
    is_built_in = {*methods, of_baseline} <= set(BUILTIN)
    used: tuple[UserModule, ...] = () if is_built_in else tuple(modules)
    if mistakes.sound(("trainer",)):
        used = with_evaluator(used, top.trainer)
    pooling = encoder_pooling(top.trainer, places, search)
    make = partial(
        MethodSpec,
        user_modules=used,
        encoder_pooling=pooling,
        tracking=top.tracking,
        baseline=baseline,
    )
    return make, search, left_out


def _read_baseline(
    top: StudyFile, methods: tuple[str, ...], places: Places, mistakes: Mistakes
) -> tuple[dict[str, Any] | None, str]:
    """The settings of the baseline (None without one), and its method.

    With an encoder of its own the settings have the pooling which that declares.
    """
    if top.baseline is None or not mistakes.sound((BASELINE,), ("trainer",)):
        return None, methods[0]
    given, source = top.baseline, mistakes.source
    possible = methods
    if "method" in given:
        path = (BASELINE, "method")
        named = mistakes.attempt(lambda: _known_method(source, path, given["method"]))
        if named is None:
            return None, methods[0]
        possible = (named,)
    check_baseline(top, methods, possible[0], mistakes)
    kind = settings_class(possible[0])
    if "encoder" in given and not {"pooling"} & {*given, *top.trainer}:
        plain = kind.model_fields["pooling"].default
        given = with_pooling(kind, given, encoder_pooling(given, places, {}) or plain)
    return dict(given), possible[0]


def read_search(
    top: StudyFile, known: Mapping[str, Setting], mistakes: Mistakes
) -> tuple[dict[str, Dimension], tuple[Partial, ...]]:
    """The dimensions of the entries without a mistake, and the points that they leave out."""
    search: dict[str, Dimension] = {}
    left_out: tuple[Partial, ...] = ()
    for name, written in top.search.items():
        if not mistakes.sound(("search", name)):
            continue
        if name == STRATA:
            drawn = mistakes.attempt(partial(read_strata, mistakes.source, written))
            search, left_out = (drawn[0] | search, drawn[1]) if drawn else (search, left_out)
        else:
            read = partial(read_dimension, mistakes.source, known[name], written)
            if (dimension := mistakes.attempt(read)) is not None:
                search[name] = dimension
    return search, left_out


def places_of(source: Source, folder: Path | None) -> Places:
    """The folders for the relative paths of a study; those of --set are in the working folder."""
    given = (path[1:] for path in source.given if path[:1] == ("trainer",))
    return Places(folder, frozenset(str(path[0]) for path in given if path))


def encoder_pooling(
    trainer: Mapping[str, Any], places: Places, search: Mapping[str, Dimension]
) -> Pooling | None:
    """The pooling that all encoders of a study declare, where its file gives none.

    None where they differ or one declares none.
    """
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
        names = tuple(dict.fromkeys(listed))
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


SECTIONS = ("trainer", "search")
"""The sections that a profile changes key by key; it replaces anything else whole."""


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

    A setting under `search` is replaced whole, and taken away by null. The study is then called
    STUDY-NAME, and what the profile gives keeps its place in the file. Raises SpecError for a
    profile that is not there.
    """
    places = {at: place for at, place in source.places.items() if at[:1] != ("profiles",)}
    values, mistakes = copy.deepcopy(source.values), list(source.mistakes)
    merged = Source(source.name, source.text, values, places, mistakes=mistakes)
    profiles = merged.values.pop("profiles", {})
    if name is None:
        return merged
    if name not in profiles:
        raise source.error(("profiles",), f"no profile {name!r}; {nearest(name, profiles)}")
    merged.profile = name
    if isinstance(merged.values.get("study"), str):
        merged.values["study"] += f"-{name}"
        places["study",] = source.places["profiles", name]
    for key, value in profiles[name].items():
        if key in SECTIONS and isinstance(value, dict):
            _merge_section(source, merged, key, value)
        else:
            merged.values[key] = value
            _move(source, merged, (key,))
    return merged


def _merge_section(source: Source, merged: Source, section: str, given: dict[str, Any]) -> None:
    target = merged.values.setdefault(section, {})
    if not isinstance(target, dict):
        return  # the file itself is refused for it
    for setting, value in given.items():
        _move(source, merged, (section, setting))
        if section == "search" and value is None:
            if setting not in target:
                raise merged.error(("search", setting), "null takes away what the file searches")
            del target[setting]
        else:
            target[setting] = value


def _move(source: Source, merged: Source, path: KeyPath) -> None:
    """Let the values at `path` have the places that they have in the profile."""
    said = ("profiles", merged.profile, *path)
    kept = {at: place for at, place in merged.places.items() if at[: len(path)] != path}
    moved = {at[2:]: place for at, place in source.places.items() if at[: len(said)] == said}
    merged.places = kept | moved


def read_study(
    path: Path,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    modules: Sequence[UserModule] = (),
    program: Program | None = None,
) -> StudySpec:
    """Read and check a study file, with one of its profiles laid over it where one is named.

    Args:
        overrides: `key=value`, applied after both.
        modules: imported modules, recorded with a study that uses their methods.
        program: the program that trains the trials in place of mtdlab's trainer.

    Raises:
        SpecError: with every mistake: file, line, column, the value, what is allowed and the
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
    """Read and check the text of a study file; `name` is what errors call it.

    Args:
        folder: where the relative paths in it are looked up first.

    Raises:
        SpecError: as `read_study` does.
    """
    return build_study(parse(name, text), modules, folder, program)


def defined_study(
    definition: Mapping[str, Any],
    text: str,
    modules: Sequence[UserModule] = (),
    folder: Path | None = None,
    program: Program | None = None,
    overrides: Sequence[str] = (),
) -> StudySpec:
    """The study of a recorded `StudySpec.definition`, which was read from `text`.

    Raises SpecError where this version refuses it.
    """
    values = copy.deepcopy(dict(definition))
    source = Source(f"study {values.get('study')}", text, values)
    return build_study(_over(source, overrides), modules, folder, program)


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
    mistakes = Mistakes(source)
    unknown = [key for key in source.values if key not in StudyFile.model_fields]
    mistakes.collect(unknown_key(source, (key,), StudyFile) for key in unknown)
    values = source.values.get("trainer") or {}
    places = places_of(source, path.parent.absolute() if path else None)
    settings = mistakes.attempt(lambda: _trainer(source, values, places))
    mistakes.raise_all()
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
        mistakes = Mistakes(source)
        for name in (None, *names):
            mistakes.attempt(partial(_check_profile, source, name, program))
        mistakes.raise_all()
    return source


def _check_profile(source: Source, name: str | None, program: Program | None) -> None:
    build_study(lay_over(source, name), program=program)


def _over(source: Source, overrides: Sequence[str]) -> Source:
    mistakes = Mistakes(Source("--set", "", {}))
    for assignment in overrides:
        mistakes.attempt(partial(source.override, assignment))
    mistakes.raise_all()
    if "profiles" in source.values:
        message = "--set comes after the profile; set the key itself, such as trainer.steps=50"
        raise source.error(("profiles",), message)
    return source
