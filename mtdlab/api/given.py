"""A study as a command or a Python function is given it: read, and written as a command again."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtdlab.errors import MtdlabError
from mtdlab.packaged import find_study_file

if TYPE_CHECKING:
    from mtdlab.config import StudySpec, TrainerSettings
    from mtdlab.programs import Program
    from mtdlab.user_code import UserModule

Study = str | Path | Mapping[str, Any]
"""A study file, the name of a packaged study, or the contents of a study file, in which lists may
be ranges, tuples and arrays."""

Overrides = Mapping[str, Any]
"""Values in the place of the study file's, by key: {"trainer.steps": 50}."""


@dataclass(frozen=True)
class Given:
    """A study, what replaces parts of it, and the code of the user.

    Attributes:
        study: None where the defaults of the trainer are meant.
        set_: KEY=VALUE, as --set takes them.
        import_: Python files or modules that define training methods.
        evaluator: MODULE:FUNCTION that scores encoders.
        objective: MODULE:FUNCTION that trains in place of mtdlab's trainer.
    """

    study: Study | None
    profile: str | None = None
    set_: Sequence[str] | None = None
    import_: Sequence[str] | None = None
    evaluator: str | None = None
    objective: str | None = None
    storage: str | None = None

    def read(self) -> "StudySpec":
        """The checked study, its code imported. Raises MtdlabError for a mistake in it."""
        # imported here to start fast, as in all functions of this module
        from mtdlab.config.reader import parse_study, read_study

        if isinstance(self.study, Mapping):
            if self.profile or self.set_:
                raise MtdlabError(
                    "a study given as values takes no profile or overrides; change them"
                )
            text = write_values(self.study)
            modules, program = self.code()
            return parse_study("study", text, modules, program=program)
        file = self._file()
        assert file is not None, "only settings have defaults"
        return read_study(file, self.set_ or [], self.profile, *self.code())

    def settings(self) -> "TrainerSettings":
        """The settings of its trainer section alone. Raises MtdlabError for a mistake in them."""
        from mtdlab.config import read_settings

        file = self._file()
        import_named(self.import_, file, self.evaluator)
        return read_settings(file, self.set_ or [], self.profile)

    def code(self) -> "tuple[tuple[UserModule, ...], Program | None]":
        """As `find_code`, also from the folder of the study file."""
        return find_code(self.import_, self.evaluator, self.objective, self._file())

    def command(self, models: str | Path = "models", artifacts: str | None = None) -> str:
        """The sweep that resumes it, to be recorded; empty for a study given as values."""
        if isinstance(self.study, Mapping):
            return ""
        kept = None if str(models) == "models" else str(models)
        words = self.options() + write_options(models=kept, artifacts=artifacts)
        return shlex.join(["mtdlab", "sweep", str(self.study), *words])

    def options(self) -> list[str]:
        """What is given beside the study, as words of a command."""
        values = {name: value for name, value in vars(self).items() if name != "study"}
        return write_options(**values)

    def _file(self) -> Path | None:
        if self.study is None or isinstance(self.study, Mapping):
            return None
        return find_study_file(Path(self.study))


def find_code(
    import_: Sequence[str] | None,
    evaluator: str | None,
    objective: str | None,
    file: Path | None = None,
) -> "tuple[tuple[UserModule, ...], Program | None]":
    """The modules and the program of --import, --evaluator and --objective, imported.

    Also from the folder of a study file. Raises MtdlabError as `import_named`, and where the
    program is missing or cannot be called as expected.
    """
    modules = import_named(import_, file, evaluator)
    if objective is None:
        return modules, None
    from mtdlab.programs import find_program

    return modules, find_program(objective, _folders(file))


def import_named(
    given: Sequence[str] | None, file: Path | None = None, evaluator: str | None = None
) -> "tuple[UserModule, ...]":
    """Import the modules of --import and MTDLAB_IMPORT, also from the folder of a study file.

    Args:
        evaluator: the function of --evaluator; by default that of MTDLAB_EVALUATOR, if any.

    Raises:
        MtdlabError: where one is missing, fails, or defines no method.
    """
    from mtdlab.methods.user_modules import import_evaluator, import_modules, list_modules

    folders = _folders(file)
    import_evaluator(evaluator, folders)
    return import_modules(list_modules(given or []), folders)


def _folders(file: Path | None) -> list[Path]:
    """Where code of the user is looked up: the working folder, then that of the study file."""
    return [Path(), *([file.parent] if file else [])]


def write_options(**given: str | Sequence[str] | None) -> list[str]:
    """Options with their values as words of a command, by the names of the parameters."""
    words = []
    for name, values in given.items():
        for value in [values] if isinstance(values, str) else values or []:
            words += [f"--{name.rstrip('_')}", value]
    return words


def assign(overrides: Overrides | None) -> list[str]:
    """Overrides as --set takes them; JSON values are YAML."""
    plain = {key: _plain(value, key) for key, value in (overrides or {}).items()}
    return [f"{key}={json.dumps(value)}" for key, value in plain.items()]


def write_values(study: Mapping[str, Any]) -> str:
    """A study given as values, as the text of a study file."""
    import yaml

    return yaml.safe_dump(_plain(study, "study"), sort_keys=False, allow_unicode=True)


def _plain(value: Any, name: str) -> Any:
    """A value as a study file can hold it: ranges, tuples and arrays are lists, a path is text.

    Args:
        name: what the error calls it.

    Raises:
        MtdlabError: for one that it cannot hold.
    """
    if isinstance(value, Mapping):
        return {str(key): _plain(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(each, name) for each in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        # arrays and their scalars, of numpy and of others
        return value.tolist()
    if value is None or isinstance(value, str | int | float):
        return value
    raise MtdlabError(
        f"{name}: a study file cannot hold {value!r} ({type(value).__name__}); give text, a "
        "number, true or false, a list, or a mapping of these"
    )
