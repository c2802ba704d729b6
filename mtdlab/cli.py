"""The command line: `mtdlab COMMAND`, its errors and exit codes.

Large packages are imported inside the commands that need them, so that `--help` is fast.
"""

import sys

import typer

from mtdlab.commands import confirm, corpus, encoders, methods, plan, report, sweep
from mtdlab.errors import MtdlabError, TrialError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Study how the history in the negative queue affects a contrastive sentence encoder: "
    "train over EMA decays and queue sizes, and report the results.",
)
for command in (
    sweep.sweep,
    report.report,
    plan.plan,
    confirm.confirm,
    sweep.studies,
    encoders.train,
    encoders.evaluate,
    corpus.corpus,
    methods.methods,
    methods.schema,
):
    app.command()(command)


def main() -> None:
    """Run a command; report a user's mistake in one sentence, without a traceback."""
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
