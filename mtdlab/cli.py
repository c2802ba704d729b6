"""The command line: `mtdlab COMMAND`, its errors and exit codes.

Large packages are imported inside the commands that need them, so that `--help` is fast.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.core import TyperCommand, TyperGroup

from mtdlab import __version__
from mtdlab.api.report import source_date
from mtdlab.commands import (
    claims,
    compare,
    confirm,
    corpus,
    decide,
    doctor,
    encoders,
    init,
    methods,
    plan,
    report,
    reproduce,
    show,
    slurm,
    study_exchange,
    sweep,
)
from mtdlab.errors import MtdlabError, TrialError, naming_missing
from mtdlab.terminal import OutputError, print_text, whole_output


def _without_flag_types(params: list[Any]) -> list[Any]:
    """The options of a command, of which flags show no type in `--help`: they take no value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_flag_types(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_flag_types(super().get_params(ctx))


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Run a study": (
        init.init,
        plan.plan,
        sweep.sweep,
        sweep.worker,
        slurm.slurm,
        confirm.confirm,
        reproduce.reproduce,
    ),
    "Read the results": (
        show.studies,
        show.show,
        compare.compare,
        decide.decide,
        claims.claims,
        report.report,
    ),
    "Manage studies": (
        sweep.stop,
        doctor.doctor,
        study_exchange.delete,
        study_exchange.rename,
        study_exchange.export_study,
        study_exchange.import_study,
    ),
    "Without a study": (encoders.train, encoders.evaluate, corpus.corpus),
    "Reference": (methods.methods, methods.schema),
}
for panel, commands in _PANELS.items():
    for command in commands:
        name = command.__name__.replace("_", "-")
        app.command(name, cls=_Command, rich_help_panel=panel)(command)

# typer holds its own copy of click, or click itself, depending on its version
_UsageError = cast(type[typer.BadParameter], typer.BadParameter.__bases__[0])


def _print_version(wanted: bool) -> None:
    if wanted:
        print_text(f"mtdlab {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Study how the history in the negative queue affects a contrastive sentence encoder: train
    over EMA decays and queue sizes, and report the results.
    """
    del version


def main() -> None:
    """Run a command; report a user's mistake in one sentence, without a traceback.

    With --json it is one JSON object on standard output, {"error": {"type", "message",
    "exit_code"}}.
    """
    as_json = "--json" in sys.argv[1:]
    try:
        source_date()
        code: Any = None
        try:
            # a command line that cannot be parsed is printed by typer itself, unless as JSON
            with naming_missing():
                code = app(prog_name="mtdlab", standalone_mode=not as_json)
        except SystemExit as ended:
            code = ended.code
        with whole_output(sys.stdout):
            sys.stdout.flush()
        sys.exit(code)
    except BrokenPipeError:
        # as Click does where it handles errors itself
        _discard_output()
        sys.exit(1)
    except OutputError as error:
        _discard_output()
        _fail(error.kind, str(error), error.exit_code, as_json=False)
    except MtdlabError as error:
        _fail(error.kind, str(error), error.exit_code, as_json)
    except TrialError as error:
        _fail("run failed", f"the run failed: {error}", 1, as_json)
    except _UsageError as error:
        _fail("usage", error.format_message(), 2, as_json)
    except KeyboardInterrupt:
        sys.exit(130)


def _discard_output() -> None:
    """Let the interpreter discard what it could not write, which it would try again at its end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(kind: str, message: str, exit_code: int, as_json: bool) -> NoReturn:
    fields = {"type": kind, "message": message, "exit_code": exit_code}
    try:
        if as_json:
            print_text(json.dumps({"error": fields}, indent=2), flush=True)
            sys.exit(exit_code)
    except OutputError:
        _discard_output()
    # nobody can be told where standard error is full too
    with suppress(OutputError):
        print_text(f"mtdlab: {message}", file=sys.stderr)
    sys.exit(exit_code)
