"""A study as a command or a Python function is given it: read, and written as a command again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtdlab.analysis.data.defaults import MODELS_FOLDER
from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.data_paths import find_study_file
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import find_method, method_names

if TYPE_CHECKING:
    from mtdlab.config.study import StudySpec
    from mtdlab.programs import Program
    from mtdlab.settings import TrainerSettings
    from mtdlab.user_code import UserModule

StudySource = str | Path | Mapping[str, Any]
"""A study file, the name of a packaged study, or the contents of a study file, in which lists may
be ranges, tuples and arrays."""

Overrides = Mapping[str, Any]
"""Values in the place of the study file's, by key: {"trainer.steps": 50}."""


@dataclass(frozen=True)
class Given:
    """A study, what replaces parts of it, and the code of the user.

    Attributes:
        study: None where the defaults of the trainer are meant.
        set_, import_, evaluator: as the options of these names take them.
        objective: what trains in place of mtdlab's trainer: MODULE:FUNCTION, or a method that
            brings a trainer, which takes the place of the study's method.
    """

    study: StudySource | None = None
    profile: str | None = None
    set_: Sequence[str] | None = None
    import_: Sequence[str] | None = None
    evaluator: str | None = None
    objective: str | None = None
    storage: str | Path | None = None

    def read(self) -> "StudySpec":
        """The checked study, its code imported. Raises MtdlabError for a mistake in it."""
        # imported here to start fast, as in all functions of this module
        from mtdlab.config.reader import parse_study, read_study

        modules, program = self.code()
        method = self._method()
        if isinstance(self.study, Mapping):
            if self.profile or self.set_:
                raise MtdlabError(
                    "a study given as values takes no profile or overrides; change them"
                )
            import yaml

            plain = _plain(self.study)
            if method is not None:
                plain["trainer"] = {**(plain.get("trainer") or {}), "method": method}
            text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
            return parse_study("study", text, modules, program=program)
        file = self._file()
        assert file is not None, "only settings have defaults"
        own = [] if method is None else [f"trainer.method={method}"]
        return read_study(file, [*(self.set_ or ()), *own], self.profile, modules, program)

    def settings(self) -> "TrainerSettings":
        """The settings of the trainer section alone. Raises MtdlabError for a mistake in them."""
        from mtdlab.config.reader import read_settings

        self.code()
        return read_settings(self._file(), self.set_ or (), self.profile)

    def code(self) -> "tuple[tuple[UserModule, ...], Program | None]":
        """The imported modules, with those of MTDLAB_IMPORT and MTDLAB_EVALUATOR, and the program.

        They are looked up in the working folder, then in that of the study file. Raises MtdlabError
        where one is missing, fails, or defines no method, and where the program cannot be called as
        expected.
        """
        from mtdlab.methods.user_modules import import_evaluator, import_modules, list_modules
        from mtdlab.programs import find_program

        file = self._file()
        folders = [Path(), *([file.parent] if file else [])]
        import_evaluator(self.evaluator, folders)
        modules = import_modules(list_modules(self.import_ or []), folders)
        if self.objective is None or self._method() is not None:
            return modules, None
        return modules, find_program(self.objective, folders)

    def _method(self) -> str | None:
        """The method that --objective names. Raises MtdlabError for one that brings no trainer."""
        if self.objective is None or self.objective not in method_names():
            return None
        if not find_method(self.objective).brings_trainer:
            raise MtdlabError(
                f"--objective {self.objective}: mtdlab's trainer trains this method; leave the "
                f"option out, and write method: {self.objective} under trainer"
            )
        return self.objective

    def invocation(
        self, models: str | Path = MODELS_FOLDER, artifacts: str | Path | None = None
    ) -> Invocation:
        """The sweep that resumes the study, to be recorded; empty for a study of values."""
        if isinstance(self.study, Mapping):
            return NO_INVOCATION
        kept = None if str(models) == MODELS_FOLDER else str(models)
        given = {name: value for name, value in vars(self).items() if name != "study"}
        options = as_options(**given, models=kept, artifacts=artifacts)
        return Invocation("sweep", (str(self.study),), options)

    def _file(self) -> Path | None:
        if self.study is None or isinstance(self.study, Mapping):
            return None
        return find_study_file(Path(self.study))


def as_options(**given: str | Path | Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """The options that have values, as `Invocation` holds them, by the names of the parameters."""
    values = {
        name.rstrip("_"): (str(value),) if isinstance(value, str | Path) else tuple(value or ())
        for name, value in given.items()
    }
    return {name: texts for name, texts in values.items() if texts}


def assign(overrides: Overrides | None) -> list[str]:
    """Texts KEY=VALUE as --set takes them, with values as JSON, which YAML reads."""
    return [f"{key}={json.dumps(value)}" for key, value in _plain(overrides or {}).items()]


def _plain(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Values as a study file can hold them. Raises MtdlabError for one that it cannot hold."""
    plain = {}
    for name, value in values.items():
        try:
            plain[str(name)] = (
                _plain(value)
                if isinstance(value, Mapping)
                else json.loads(json.dumps(value, default=_as_plain))
            )
        except (TypeError, ValueError) as error:
            raise MtdlabError(
                f"{name}: a study file cannot hold {error}; give text, a number, true or false, a "
                "list, or a mapping of these"
            ) from None
    return plain


def _as_plain(value: Any) -> Any:
    """Lists for ranges and arrays, and the text of a path. Raises TypeError for anything else."""
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, range):
        return list(value)
    if hasattr(value, "tolist"):
        # arrays and their scalars, of numpy and of others
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} ({type(value).__name__})")
