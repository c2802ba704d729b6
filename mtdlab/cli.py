"""The command line: `mtdlab COMMAND`, and how a command ends.

A command reads its arguments, calls one function and prints. Everything heavy is imported inside
the command that needs it, so that help answers at once.
"""

import sys

import typer

from mtdlab.commands import encoders, studies
from mtdlab.errors import MtdlabError, TrialError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Ask how much history a contrastive sentence encoder should trace: train it over a "
    "grid of EMA decays and queue sizes, and read the report.",
)
for command in (
    studies.sweep,
    studies.report,
    studies.plan,
    studies.studies,
    encoders.train,
    encoders.evaluate,
    encoders.corpus,
):
    app.command()(command)


def main() -> None:
    """Run a command; a user's mistake is one sentence and an exit code, never a traceback."""
    try:
        app()
    except MtdlabError as error:
        print(f"mtdlab: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except TrialError as error:
        print(f"mtdlab: the run failed: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
