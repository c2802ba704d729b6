"""The command corpus, which counts a training text and compares it with an evaluation."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mtdlab.api.given import Given
from mtdlab.commands import options as opt
from mtdlab.commands.printing import print_json, print_table
from mtdlab.errors import MtdlabError
from mtdlab.terminal import print_text, warn


def corpus(
    name: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="A study file, or a corpus as a study names it: builtin, a text file, a folder of "
            "them, or dataset:NAME#COLUMN.",
        ),
    ],
    encoder: Annotated[
        str | None,
        typer.Option(help="Encoder whose tokenizer is used. Default: the study's, or builtin."),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(min=3, help="Tokens per sentence in training. Default: the study's, or 32."),
    ] = None,
    evaluation: Annotated[
        str | None,
        typer.Option(
            help="Evaluation whose sentences are looked for in the text. Default: the study's."
        ),
    ] = None,
    profile: opt.Profile = None,
    set_: opt.Overrides = None,
    import_: opt.Imports = None,
    as_json: opt.AsJson = False,
) -> None:
    """Count a corpus: sentences, what is left out and why, lengths in tokens.

    With an evaluation it also counts the evaluation's sentences that stand in the text.
    """
    from mtdlab.corpus.survey import survey
    from mtdlab.evaluation.pairs import describe_pairs, load_splits

    is_study = name.endswith((".yaml", ".yml"))
    if not is_study and (profile or set_):
        raise MtdlabError(f"corpus {name}: --profile and --set need a study file, such as a.yaml")
    study = Path(name) if is_study else None
    settings = Given(study, profile, set_, import_).settings()
    text = settings.corpus if is_study else name
    evaluation = evaluation or (settings.evaluation if is_study else None)
    limit = max_length or settings.max_length
    evaluated: dict[str, list[str]] = {}
    if evaluation:
        pairs = dict(zip(("dev", "test"), load_splits(evaluation), strict=True))
        evaluated = {f"{evaluation} {split}": [*p.first, *p.second] for split, p in pairs.items()}
        for remark in describe_pairs(evaluation):
            warn(remark)
    counts = asdict(survey(text, encoder or settings.encoder, limit, evaluated))
    if as_json:
        print_json(counts)
    else:
        _print(counts, limit)


def _print(counts: dict[str, Any], limit: int) -> None:
    bins, overlaps = counts.pop("histogram"), counts.pop("overlaps")
    for key, value in counts.items():
        print_text(f"{key:11} {value:,}" if isinstance(value, int) else f"{key:11} {value}")
    print_text()
    print_table(
        [
            {
                "tokens": f"{row['low']} to {row['high']}" if row["high"] else f"{row['low']} on",
                "sentences": row["sentences"],
                "%": 100 * row["sentences"] / counts["sentences"],
            }
            for row in bins
        ]
    )
    share = 100 * counts["too_long"] / counts["sentences"]
    print_text(f"training cuts {share:.2f} % of the sentences, at {limit} tokens")
    for overlap in overlaps:
        print_text(
            f"evaluation {overlap['evaluation']}: {overlap['in_corpus']:,} of "
            f"{overlap['sentences']:,} sentences stand in this text (case and punctuation ignored)"
        )
        for example in overlap["examples"]:
            print_text(f"  {example}")
