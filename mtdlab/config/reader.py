"""A study file, read and checked: every mistake is found before anything runs."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mtdlab.config.assemble import build_study, encoder_pooling, methods_of, places_of
from mtdlab.config.mistakes import Mistakes
from mtdlab.config.paths import Places, located
from mtdlab.config.profiles import laid_over, profile_names
from mtdlab.config.source import Source, SpecError, parse, read
from mtdlab.config.study import StudySpec, with_pooling
from mtdlab.config.study_file import StudyFile, checked, unknown_key
from mtdlab.methods.registry import settings_class
from mtdlab.programs import Program
from mtdlab.settings import TrainerSettings
from mtdlab.user_code import UserModule


def read_study(
    path: Path,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    modules: Sequence[UserModule] = (),
    program: Program | None = None,
) -> StudySpec:
    """Read and check a study file, with one of its profiles laid over it where one is named.

    overrides   `key=value`, applied after both.
    modules     imported modules, recorded with a study that uses their methods.
    program     what trains the trials, in place of mtdlab's trainer.

    Raises SpecError with every mistake: file, line, column, the value, what is allowed and the
    nearest key.
    """
    source = _over(laid_over(_read(path, program), profile), overrides)
    return build_study(source, modules, path.parent.absolute(), program)


def parse_study(
    name: str,
    text: str,
    modules: Sequence[UserModule] = (),
    folder: Path | None = None,
    program: Program | None = None,
) -> StudySpec:
    """Read and check the text of a study file; `name` is what errors call it.

    folder  where the relative paths in it are looked up first.

    Raises SpecError as `read_study` does.
    """
    return build_study(parse(name, text), modules, folder, program)


def defined_study(
    definition: Mapping[str, Any],
    text: str,
    modules: Sequence[UserModule] = (),
    folder: Path | None = None,
    program: Program | None = None,
) -> StudySpec:
    """The study of a recorded `StudySpec.definition`, which was read from `text`.

    Raises SpecError where this version refuses it.
    """
    name = str(definition.get("study"))
    return build_study(Source(f"study {name}", text, dict(definition)), modules, folder, program)


def read_settings(
    path: Path | None, overrides: Sequence[str] = (), profile: str | None = None
) -> TrainerSettings:
    """The settings of a single run: a study file's trainer section, or defaults, overridden.

    Relative paths of files that are there are replaced by those found, see `config.paths`. Raises
    SpecError as `read_study` does.
    """
    if path is None and profile is not None:
        raise SpecError(f"--profile {profile}: name the study file that it stands in")
    source = _read(path) if path else Source("--set", "", {})
    source = _over(laid_over(source, profile), overrides)
    mistakes = Mistakes(source)
    unknown = [key for key in source.values if key not in StudyFile.model_fields]
    mistakes.collect(unknown_key(source, (key,), StudyFile) for key in unknown)
    values = source.values.get("trainer") or {}
    places = places_of(source, path.parent.absolute() if path else None)
    settings = mistakes.attempt(lambda: _trainer(source, values, places))
    mistakes.raise_all()
    assert settings is not None, "without settings there is a mistake"
    return located(settings, places)


def _trainer(source: Source, values: Any, places: Places) -> TrainerSettings:
    model = settings_class(methods_of(source, values, {})[0])
    if isinstance(values, dict):
        values = with_pooling(model, values, encoder_pooling(values, places, {}))
    return checked(source, ("trainer",), model, values)


def _read(path: Path, program: Program | None = None) -> Source:
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
    build_study(laid_over(source, name), program=program)


def _over(source: Source, overrides: Sequence[str]) -> Source:
    mistakes = Mistakes(Source("--set", "", {}))
    for assignment in overrides:
        mistakes.attempt(partial(source.override, assignment))
    mistakes.raise_all()
    if "profiles" in source.values:
        message = "--set comes after the profile; set the key itself, such as trainer.steps=50"
        raise source.error(("profiles",), message)
    return source
