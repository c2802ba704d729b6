"""The commands train and evaluate, for a single encoder."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.api import run
from mtdlab.api.given import Given
from mtdlab.commands import options as opt
from mtdlab.commands.printing import print_json, print_table
from mtdlab.terminal import Phases, begin_phase, following_phases, print_text


def train(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            autocompletion=opt.complete_study_file,
            help="A study file, or a packaged study, whose trainer section to take.",
        ),
    ] = None,
    profile: opt.Profile = None,
    set_: opt.Overrides = None,
    import_: opt.Imports = None,
    evaluator: opt.Evaluator = None,
    out: opt.ModelFolder = None,
    as_json: opt.AsJson = False,
) -> None:
    """Train one encoder and print its scores, without a study.

    Nothing is kept without --out: neither the model nor its scores.
    """
    settings = Given(file, profile, set_, import_, evaluator).settings()
    if out is None:
        print_text("without --out the trained model is not kept", file=sys.stderr)
    row = run.run_once(settings, out)
    if as_json:
        print_json(row)
    else:
        print_text(f"encoder {row.pop('encoder')}")
        print_table([row])
        print_text(f"model: {out}" if out else "model: not kept; save it with --out FOLDER")


def evaluate(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            help="builtin, a folder, a Hugging Face name, or vectors:FILE (word vectors, averaged)."
        ),
    ],
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="STS12 ... SICKR, MR ... MRPC, builtin; sts and transfer for whole tables; "
            "beir:FOLDER, mteb:TASK, evaluator. "
            "Default: all, or builtin without data.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder in SentEval's layout. Default: MTDLAB_DATA, or senteval in it."),
    ] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="cls, mean, first-last, last2 or last-token. Default: that of a model saved by "
            "mtdlab, with its prompt and segments, else that of the encoder's "
            "1_Pooling/config.json, else cls, or last-token for a decoder."
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="float32, bfloat16, or auto: bfloat16 where the hardware has instructions for it. "
            "Default: that in which a model saved by mtdlab was trained and scored, else float32."
        ),
    ] = None,
    encoder_layers: Annotated[
        int | None,
        typer.Option(help="How many of the encoder's layers are kept, the first. Default: all."),
    ] = None,
    whiten: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="Whiten by each task's own sentences, keep K dimensions."
        ),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="SEED[,NAME=VALUE,...]",
            help="Map each task's own sentences to a normal distribution by a flow (BERT-flow), "
            "trained with this seed. Settings: levels, depth, width, permutation (reversed or "
            "random), batch_size, learning_rate.",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Tab-separated first, second, score: for alignment and uniformity."),
    ] = None,
    mteb: Annotated[Path | None, typer.Option(help="Folder for MTEB's tree of results.")] = None,
    evaluator: opt.Evaluator = None,
    as_json: opt.AsJson = False,
) -> None:
    """Score an encoder on the tasks that papers report."""
    context.with_resource(following_phases(Phases(format_seconds)))
    begin_phase("importing the packages that encode")
    from mtdlab.evaluation.evaluate import as_fields, as_text
    from mtdlab.evaluation.evaluate import evaluate as score
    from mtdlab.evaluation.processing import parse_flow

    result = score(
        model,
        tasks=tasks,
        data=data,
        pooling=pooling,
        precision=precision,
        encoder_layers=encoder_layers,
        whiten=whiten,
        flow=None if flow is None else parse_flow(flow),
        pairs=pairs,
        mteb=mteb,
        evaluator=evaluator,
    )
    if as_json:
        print_json(as_fields(result))
    else:
        print_text("\n".join(as_text(result)))
    raise typer.Exit(0 if result.complete else 1)
