"""A study from the sections of its file, with every mistake in them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mtdlab.config import strata
from mtdlab.config.checks import (
    check_searched,
    check_tasks,
    check_top_level,
    check_trainer,
    check_values,
)
from mtdlab.config.dimensions import read_dimension
from mtdlab.config.mistakes import Mistakes
from mtdlab.config.own_metric import completed, with_evaluator
from mtdlab.config.paths import Places
from mtdlab.config.program_sections import check_program_top_level, read_program_sections
from mtdlab.config.program_study import ProgramSpec
from mtdlab.config.rules import (
    check_points,
    check_pruner,
    check_strata_kept,
    check_trials,
    check_until,
)
from mtdlab.config.search import Choices, Dimension, Partial
from mtdlab.config.skip import read_skip
from mtdlab.config.source import KeyPath, Source
from mtdlab.config.study import StudySpec, known_settings
from mtdlab.config.study_file import StudyFile, checked, top_level
from mtdlab.config.until import Until, UntilSection, VerdictSection, extended, read_until
from mtdlab.encoders.folders import declared_pooling
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import DEFAULT, is_builtin, settings_class
from mtdlab.programs import Program
from mtdlab.settings import Pooling
from mtdlab.user_code import UserModule

READ_BY_TRIALS: tuple[KeyPath, ...] = (
    ("trainer",),
    ("search",),
    ("seeds",),
    ("sampler",),
    ("trials",),
    ("skip",),
    ("until",),
)
"""The keys that decide which trials there are."""


@dataclass(frozen=True)
class _Sections:
    """The dimensions of a search, the points they leave out, and what makes the study of them."""

    search: dict[str, Dimension]
    left_out: tuple[Partial, ...]
    make: Callable[..., StudySpec]


def build_study(
    source: Source,
    modules: Sequence[UserModule] = (),
    folder: Path | None = None,
    program: Program | None = None,
) -> StudySpec:
    """The study that a file describes. Raises SpecError with all of its mistakes.

    program  what trains its trials, in place of mtdlab's trainer.
    """
    if not isinstance(source.values, dict):
        raise source.error((), "a study file is a mapping that begins with study: NAME")
    mistakes, spec, given = Mistakes(source), None, "select_by" in source.values
    places = places_of(source, folder)
    top = top_level(source, mistakes)
    if program is None:
        top = completed(top)
    (check_program_top_level if program else check_top_level)(source, top, mistakes)
    verdict = mistakes.attempt(lambda: checked(source, ("verdict",), VerdictSection, top.verdict))
    until = _read_until(source, top, mistakes)
    sections = None
    if mistakes.readable(("trainer",), ("search",)):
        sections = _read_sections(source, top, modules, program, places, mistakes)
    if sections is not None and verdict is not None and mistakes.sound(*READ_BY_TRIALS):
        skip = mistakes.attempt(lambda: read_skip(source, top.skip, sections.search, top.sampler))
        spec = sections.make(
            name=top.study,
            metric=top.metric,
            # a program has no dev pairs of its own
            select_by=top.select_by if given or program is None else top.metric,
            select_by_given=given,
            trainer=top.trainer,
            search=sections.search,
            seeds=_seeds(top, until),
            sampler=top.sampler,
            pruner=top.pruner,
            trials=top.trials,
            text=source.text,
            skip=sections.left_out + (skip or ()),
            description=top.description,
            until=until,
            margin=verdict.margin,
            alpha=verdict.alpha,
            places=places,
            tracking=top.tracking,
            definition=source.values,
        )
        _check_rules(source, top, spec, mistakes)
    mistakes.raise_all()
    assert spec is not None, "a study that cannot be built has a mistake"
    return spec


def _read_until(source: Source, top: StudyFile, mistakes: Mistakes) -> Until | None:
    if top.until is None:
        return None
    section = mistakes.attempt(lambda: checked(source, ("until",), UntilSection, top.until))
    if section is None or not mistakes.sound(("seeds",)):
        return None
    seeds = tuple(dict.fromkeys(top.seeds))
    return mistakes.attempt(lambda: read_until(source, section, seeds))


def _seeds(top: StudyFile, until: Until | None) -> tuple[int, ...]:
    seeds = tuple(dict.fromkeys(top.seeds))
    return extended(seeds, until.max_seeds) if until else seeds


def _read_sections(
    source: Source,
    top: StudyFile,
    modules: Sequence[UserModule],
    program: Program | None,
    places: Places,
    mistakes: Mistakes,
) -> _Sections | None:
    """Check the sections trainer and search; None where no method of the study is known."""
    if program is not None:
        named, search, left_out = read_program_sections(source, top, mistakes)
        return _Sections(search, left_out, partial(ProgramSpec, program=program, named=named))
    methods = mistakes.attempt(lambda: methods_of(source, top.trainer, top.search))
    if methods is None:
        return None
    search, left_out = _read_method_sections(source, top, methods, mistakes)
    used: tuple[UserModule, ...] = () if all(map(is_builtin, methods)) else tuple(modules)
    if mistakes.sound(("trainer",)):
        used = with_evaluator(used, top.trainer)
    pooling = encoder_pooling(top.trainer, places, search)
    make = partial(StudySpec, user_modules=used, encoder_pooling=pooling)
    return _Sections(search, left_out, make)


def _read_method_sections(
    source: Source, top: StudyFile, methods: tuple[str, ...], mistakes: Mistakes
) -> tuple[dict[str, Dimension], tuple[Partial, ...]]:
    """The dimensions, and the points they leave out."""
    known = known_settings(methods)
    mistakes.collect(check_trainer(source, top, methods, known))
    if mistakes.sound(("trainer",), ("metric",), ("select_by",)):
        mistakes.collect(check_tasks(source, top, methods))
    search: dict[str, Dimension] = {}
    left_out: tuple[Partial, ...] = ()
    for name, written in top.search.items():
        mistakes.collect(check_searched(source, name, top, known))
        if not mistakes.sound(("search", name)):
            continue
        if name == strata.KEY:
            drawn = mistakes.attempt(partial(strata.read_strata, source, written))
            search, left_out = (drawn[0] | search, drawn[1]) if drawn else (search, left_out)
        else:
            read = partial(read_dimension, source, known[name], written)
            if (dimension := mistakes.attempt(read)) is not None:
                search[name] = dimension
    for name, dimension in search.items():
        mistakes.collect(check_values(source, known[name], dimension, methods))
    return search, left_out


def _check_rules(source: Source, top: StudyFile, spec: StudySpec, mistakes: Mistakes) -> None:
    """The rules of the whole study, as far as what they read is sound."""
    try:
        if mistakes.sound(("pruner",), ("select_by",)):
            mistakes.collect(check_pruner(source, spec))
        if mistakes.sound(("skip",)):
            mistakes.collect(check_points(source, spec))
            mistakes.collect(check_trials(source, spec))
        if mistakes.sound(*READ_BY_TRIALS, ("pruner",)):
            mistakes.collect(check_until(source, spec))
        if strata.KEY in top.search and mistakes.sound(*READ_BY_TRIALS):
            mtds = top.search[strata.KEY]["strata"]
            mistakes.collect(check_strata_kept(source, spec, mtds))
    except ValueError as error:
        # a search that has no grid
        mistakes.collect([source.error(("search",), str(error))])


def places_of(source: Source, folder: Path | None) -> Places:
    """Where the relative paths of a study are looked up: those of --set in the working folder."""
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
    found = {declared_pooling(places.find("encoder", name)) for name in names}
    return found.pop() if len(found) == 1 else None


def methods_of(source: Source, trainer: Any, search: Mapping[str, Any]) -> tuple[str, ...]:
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
