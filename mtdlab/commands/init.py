"""The command init: writes a study file."""

import itertools
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab.commands.completion import complete_packaged
from mtdlab.commands.fields import wrapped
from mtdlab.commands.new_study import BUILTIN, VALUES, NewStudy, read_varied, write_study
from mtdlab.commands.options import AsJson
from mtdlab.commands.printing import print_json
from mtdlab.errors import MtdlabError
from mtdlab.packaged import packaged_studies
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from mtdlab.config import StudySpec

_DEFAULT_VARIED = "ema_decay"
_DEFAULT_SEEDS = 5


def init(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            autocompletion=complete_packaged,
            show_default=False,
            help="Name of the new study, or of a packaged study to copy.",
        ),
    ] = "my-study",
    list_: Annotated[
        bool, typer.Option("--list", help="List the studies that come with mtdlab.")
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(help="builtin, a folder, or a Hugging Face name.", show_default=False),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="Training text: builtin, a file, a folder, or dataset:NAME#COLUMN.",
            show_default=False,
        ),
    ] = None,
    evaluation: Annotated[
        str | None,
        typer.Option(help="builtin, or a folder with graded sentence pairs.", show_default=False),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE,...]",
            show_default=False,
            help=f"Setting to vary (repeatable); values may be left out for {', '.join(VALUES)}.",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Number of seeds.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: NAME.yaml.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a study file: a new one from options or a few questions, or a copy of a packaged study.

    A copy: mtdlab init mtd

    From options: mtdlab init my-study --corpus text.txt --vary ema_decay

    Without options it asks, in a terminal.
    """
    if list_:
        _list(as_json)
        return
    path = out or Path(f"{name}.yaml")
    if path.exists():
        raise MtdlabError(f"{path} exists and is not overwritten; name another file with --out")
    given = any((encoder, corpus, evaluation, vary, seeds))
    if name in packaged_studies():
        if given:
            raise MtdlabError(
                f"{name} is a packaged study, copied as it is; give the new study another name, "
                "or leave out the options and edit the copy"
            )
        text = packaged_studies()[name].read_text(encoding="utf-8")
    else:
        _check_name(name)
        ask = not (given or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
        data = [_absolute(each or BUILTIN, path) for each in (encoder, corpus, evaluation)]
        varied = read_varied(vary or [_DEFAULT_VARIED])
        new = NewStudy(name, data[0], data[1], data[2], varied, seeds or _DEFAULT_SEEDS)
        text = write_study(_ask(new) if ask else new)
    _write(path, text, as_json)


def _check_name(name: str) -> None:
    from mtdlab.config.study import is_study_name

    if not is_study_name(name):
        raise MtdlabError(
            f"{name!r}: not a name that a study can have; use letters, digits, dots and dashes, "
            "at most 100"
        )


def _absolute(value: str, file: Path) -> str:
    """A path that exists here, for a study file in another folder; other names as they are."""
    elsewhere = file.absolute().parent != Path.cwd()
    return str(Path(value).resolve()) if elsewhere and Path(value).exists() else value


def _write(path: Path, text: str, as_json: bool) -> None:
    """Check the study, write its file, and print what it holds and what comes next."""
    from mtdlab.config.reader import parse_study

    spec = parse_study("the new study", text)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise MtdlabError(f"{path} cannot be written: {reason}") from None
    trials = len(spec.units())
    if as_json:
        print_json({"file": str(path), "study": spec.name, "trials": trials})
        return
    print_text(f"wrote {path}: study {spec.name}, {trials} trials ({_describe(spec)})")
    file = shlex.quote(str(path))
    print_text("next, to estimate time and number of seeds, to run it, and to write its page:")
    for command in (f"plan {file}", f"sweep {file}", f"report --study {spec.name}"):
        print_text(f"  mtdlab {command}")


def _describe(spec: "StudySpec") -> str:
    seeds = f"{len(spec.seeds)} seed{'s' if len(spec.seeds) > 1 else ''}"
    return f"{', '.join(spec.search) or 'nothing'} varied, {seeds}"


def _ask(new: NewStudy) -> NewStudy:
    """The same study with what the questions change. KeyboardInterrupt writes nothing."""
    print_text("Enter keeps the value in brackets; mtdlab init --list lists complete studies.")
    encoder = typer.prompt("Encoder (builtin, a folder, a Hugging Face name)", new.encoder)
    corpus = typer.prompt("Training text (builtin, a file with a sentence a line)", new.corpus)
    evaluation = typer.prompt("Evaluation (builtin, a folder of graded pairs)", new.evaluation)
    print_text(
        wrapped(f"Settings that can be varied: {', '.join(VALUES)}; others as NAME=VALUE,VALUE.")
    )
    listed: str = typer.prompt("Vary (separated by spaces)", str(_DEFAULT_VARIED))
    seeds = typer.prompt("Seeds per configuration", new.seeds, type=int)
    if seeds < 1:
        raise MtdlabError(f"{seeds} seeds: at least 1 is needed, and 2 for a confidence interval")
    if corpus != BUILTIN and evaluation == BUILTIN:
        print_text(
            wrapped(
                "note: the built-in evaluation pairs are synthetic and say little about your own "
                "text; name a folder of graded pairs under evaluation in the file."
            )
        )
    return NewStudy(new.name, encoder, corpus, evaluation, read_varied(listed.split()), seeds)


def _list(as_json: bool) -> None:
    """The packaged studies with their questions."""
    import yaml

    rows: list[dict[str, Any]] = []
    for name, path in packaged_studies().items():
        text = path.read_text(encoding="utf-8")
        values = yaml.safe_load(text)
        question = _question(str(values.get("description") or _first_comment(text)))
        profiles = list(values.get("profiles", {}))
        rows.append({"name": name, "question": question, "profiles": profiles})
    if as_json:
        print_json({"studies": rows})
        return
    width = max(len(row["name"]) for row in rows) + 2
    for row in rows:
        variants = f" Profiles: {', '.join(row['profiles'])}." if row["profiles"] else ""
        print_text(wrapped(row["question"] + variants, f"{row['name']:{width}}"))
    print_text("\nmtdlab init NAME copies one; mtdlab sweep NAME runs it as it is.")


def _question(text: str) -> str:
    """The first sentence."""
    return re.split(r"(?<=[.?])\s", " ".join(text.split()))[0]


def _first_comment(text: str) -> str:
    """The comment that a file begins with, up to its first blank line."""
    lines = itertools.takewhile(lambda line: re.match(r"#\s*\S", line), text.splitlines())
    return " ".join(line.removeprefix("#").strip() for line in lines)
