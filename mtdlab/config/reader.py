"""A study file, read and checked: every mistake is found before anything runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mtdlab.config import strata
from mtdlab.config.checks import (
    StudyFile,
    check_points,
    check_pruner,
    check_strata_kept,
    check_trainer,
    check_until,
    check_values,
    checked,
    unknown_key,
)
from mtdlab.config.dimensions import read_dimension
from mtdlab.config.profiles import laid_over, profile_names
from mtdlab.config.search import Partial
from mtdlab.config.skip import read_skip
from mtdlab.config.source import KeyPath, Source, SpecError, parse, read
from mtdlab.config.study import StudySpec, known_settings
from mtdlab.config.until import UntilSection, VerdictSection, extended, read_until
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import DEFAULT, is_builtin, settings_class
from mtdlab.methods.user_modules import UserModule
from mtdlab.settings import TrainerSettings


def read_study(
    path: Path,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    modules: Sequence[UserModule] = (),
) -> StudySpec:
    """Read and check a study file, with one of its profiles laid over it where one is named.

    overrides   `key=value`, applied after both.
    modules     imported modules, recorded with a study that uses their methods.

    Raises SpecError with file, line, column, the value, what is allowed and the nearest key.
    """
    return _study(_over(laid_over(_read(path), profile), overrides), modules)


def parse_study(name: str, text: str, modules: Sequence[UserModule] = ()) -> StudySpec:
    """Read and check the text of a study file; `name` is what errors call it.

    Raises SpecError as `read_study` does.
    """
    return _study(parse(name, text), modules)


def read_settings(
    path: Path | None, overrides: Sequence[str] = (), profile: str | None = None
) -> TrainerSettings:
    """The settings of a single run: a study file's trainer section, or defaults, overridden.

    Raises SpecError as `read_study` does.
    """
    if path is None and profile is not None:
        raise SpecError(f"--profile {profile}: name the study file that it stands in")
    source = _read(path) if path else Source("--set", "", {})
    source = _over(laid_over(source, profile), overrides)
    for key in source.values:
        if key not in StudyFile.model_fields:
            raise unknown_key(source, (key,), StudyFile)
    values = source.values.get("trainer") or {}
    model = settings_class(_methods(source, values, {})[0])
    return checked(source, ("trainer",), model, values)


def _read(path: Path) -> Source:
    """A file's values. One with profiles is checked whole: a mistake in any is found at once."""
    source = read(path)
    if not isinstance(source.values, dict):
        raise SpecError(f"{path}: a study file is a mapping that begins with study: NAME")
    if names := profile_names(source):
        for name in (None, *names):
            _study(laid_over(source, name))
    return source


def _over(source: Source, overrides: Sequence[str]) -> Source:
    for assignment in overrides:
        source.override(assignment)
    if "profiles" in source.values:
        message = "--set comes after the profile; set the key itself, such as trainer.steps=50"
        raise source.error(("profiles",), message)
    return source


def _study(source: Source, modules: Sequence[UserModule] = ()) -> StudySpec:
    top = checked(source, (), StudyFile, source.values)
    methods = _methods(source, top.trainer, top.search)
    known = known_settings(methods)
    check_trainer(source, top, methods, known)
    plain = [name for name in top.search if name != strata.KEY]
    search = {name: read_dimension(source, known[name], top.search[name]) for name in plain}
    left_out: tuple[Partial, ...] = ()
    if strata.KEY in top.search:
        drawn, left_out = strata.read_strata(source, top.search[strata.KEY])
        search = drawn | search
    for setting, dimension in search.items():
        check_values(source, known[setting], dimension, methods)
    seeds, until = tuple(dict.fromkeys(top.seeds)), None
    if top.until is not None:
        section = checked(source, ("until",), UntilSection, top.until)
        until = read_until(source, section, seeds)
        seeds = extended(seeds, until.max_seeds)
    verdict = checked(source, ("verdict",), VerdictSection, top.verdict)
    try:
        skip = left_out + read_skip(source, top.skip, search, top.sampler)
        spec = StudySpec(
            name=top.study,
            metric=top.metric,
            select_by=top.select_by,
            select_by_given="select_by" in top.model_fields_set,
            trainer=top.trainer,
            search=search,
            seeds=seeds,
            sampler=top.sampler,
            pruner=top.pruner,
            trials=top.trials,
            text=source.text,
            skip=skip,
            description=top.description,
            user_modules=() if all(map(is_builtin, methods)) else tuple(modules),
            until=until,
            margin=verdict.margin,
            alpha=verdict.alpha,
        )
        check_pruner(source, spec)
        check_points(source, spec)
        check_until(source, spec)
        if strata.KEY in top.search:
            check_strata_kept(source, spec, top.search[strata.KEY]["strata"])
    except ValueError as error:
        # a search that has no grid
        raise source.error(("search",), str(error)) from None
    return spec


def _methods(source: Source, trainer: Any, search: Mapping[str, Any]) -> tuple[str, ...]:
    """The methods that a file names, fixed or searched, each of them known."""
    if "method" in search:
        given = search["method"]
        listed = given if isinstance(given, list) else [given]
        path: KeyPath = ("search", "method")
        if not listed or not all(isinstance(name, str) for name in listed):
            raise source.error(path, f"{given!r}: write a list of methods, as in [mocose, simcse]")
        names = tuple(dict.fromkeys(listed))
    else:
        path = ("trainer", "method")
        name = trainer.get("method", DEFAULT) if isinstance(trainer, dict) else DEFAULT
        if not isinstance(name, str):
            raise source.error(path, f"{name!r}: write the name of a method, such as {DEFAULT}")
        names = (name,)
    for name in names:
        try:
            settings_class(name)
        except MtdlabError as error:
            raise source.error(path, str(error)) from None
    return names
