"""The command claims: which claims of the papers hold in the studies of a database."""

from typing import Annotated

import typer

from mtdlab.commands import options as opt
from mtdlab.commands.printing import print_json, print_table, wrap_text
from mtdlab.errors import refusing
from mtdlab.terminal import print_text

_PRINTED = ("verdict", "name", "source", "published", "mean", "low", "high", "holm", "study")


def claims(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY]...", help="Names of studies; default: all studies of the database."
        ),
    ] = None,
    storage: opt.Storage = None,
    as_json: opt.AsJson = False,
) -> None:
    """Say which claims of the papers are replicated, contradicted, undecided or not tested.

    Each at the scale of the study that tests it: mtdlab claims table8-queue-slices-small
    """
    from mtdlab.analysis.data.claims import load_claims
    from mtdlab.analysis.data.meaning import PublishedFileError
    from mtdlab.analysis.experiments import needs_curves
    from mtdlab.analysis.questions.wording import join_sentences
    from mtdlab.analysis.report.context import StudyContext
    from mtdlab.analysis.report.topics.claims import (
        compare_tests,
        explain_claims,
        summarise_claims,
        tabulate_claims,
    )
    from mtdlab.store.frames import load_frames
    from mtdlab.store.recorded import study_names

    names = studies or study_names(storage)
    with refusing(PublishedFileError):
        frames = [load_frames(name, storage, curves=needs_curves) for name in names]
        table = tabulate_claims([StudyContext(study) for study in frames], every=True)
        asks = {claim.name: claim.study for claim in load_claims()}
    counted = f"{summarise_claims(table)}."
    summary = join_sentences(counted, explain_claims(table), compare_tests(table))
    if as_json:
        print_json({"summary": summary, "claims": table.to_dict("records")})
        return
    asked, missing = table[table["study"] != ""], table[table["study"] == ""]
    if len(asked):
        rows = asked[[*_PRINTED]].rename(columns={"name": "claim", "mean": "here"})
        print_table(rows.to_dict("records"))
    for row in asked[asked["why"] != ""].to_dict("records"):
        print_text(wrap_text(row["why"], f"{row['name']}: "))
    if files := sorted({*missing["name"].map(asks)} - {""}):
        others = f"{len(missing)} claims are asked by no study here (--json lists them); files: "
        print_text(wrap_text(f"{others}{', '.join(files)}, in studies/paper"))
    print_text(wrap_text(summary))
