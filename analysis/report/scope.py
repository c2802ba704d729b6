"""What the answer of a page covers, and what was run, each in a line of the first screen."""

import re
from collections.abc import Mapping

from analysis.report.cells import clean
from analysis.report.configuration import list_varied
from analysis.report.context import StudyContext
from analysis.report.text import count
from analysis.runs import completed_runs
from analysis.verdict import Verdict, format_p

_ENCODER = re.compile(r"(?P<name>.+?): (?P<weights>[\d.,]+ \w+ weights)")
_BUILT_IN = "builtin"
_MOST_LETTERS = 160


def describe_scope(context: StudyContext) -> str:
    """Seeds, evaluation items, encoder and text; then the verdict for these items alone."""
    runs, verdict = completed_runs(context.trials), context.verdict
    seeds = int(runs["seed"].nunique())
    if seeds < 2:
        return (
            f"Covers these trials alone (one seed); {describe_encoder(context)}." if seeds else ""
        )
    items = verdict.items if verdict.levels > 1 else _count_items(context)
    return (
        f"Covers other seeds than these {verdict.seeds or seeds} and {describe_items(items)}; "
        f"{describe_encoder(context)}.{_describe_these(verdict)}"
    )


def describe_items(items: int) -> str:
    """The evaluation data that a certainty covers; items: how many are counted, 0 for none."""
    return f"evaluation items like these {items:,}" if items else "these evaluation data only"


def _count_items(context: StudyContext) -> int:
    items, runs = context.study.items, completed_runs(context.trials)
    known = items is not None and runs["number"].isin(items.numbers).all()
    return items.values.shape[1] if items is not None and known else 0


def describe_encoder(context: StudyContext) -> str:
    """The encoder with its number of weights, and whether the text is synthetic."""
    study, facts = context.study, context.study.facts
    if "table" in facts:
        return "encoder and text as in the table"
    if study.program:
        return f"program {clean(study.program, most=_MOST_LETTERS)}"
    encoder, corpus = facts.get("encoder", ""), facts.get("corpus", "")
    if "encoder" in context.trials and context.trials["encoder"].nunique() > 1:
        named = count(int(context.trials["encoder"].nunique()), "encoder")
    elif found := _ENCODER.match(encoder):
        named = f"encoder {clean(found['name'])} ({found['weights']})"
    else:
        named = f"encoder {clean(encoder, most=_MOST_LETTERS) or 'not recorded'}"
    text = f"text {clean(corpus.partition(':')[0])}" if corpus else "text not recorded"
    return f"{named}, {'synthetic text' if corpus.startswith(_BUILT_IN) else text}"


def _describe_these(verdict: Verdict) -> str:
    """The verdict without the sampling error of the evaluation items, where that is counted."""
    these = verdict.for_these
    if these is None:
        return ""
    tests = {"peaked": these.p_value, "rising": these.p_trend, "falling": these.p_trend}
    test = f" ({format_p(tests[these.verdict])})" if these.verdict in tests else ""
    return f" For exactly these items: {these.verdict}{test}."


def list_facts(context: StudyContext) -> Mapping[str, str]:
    """What varied, how many seeds, and the data with the metric."""
    study = context.study
    if not len(study.trials):
        return {}
    varied = dict(list_varied(study))
    varied.pop("seed")
    named = "; ".join(f"{name}: {values}" for name, values in varied.items())
    seeds = count(int(study.trials["seed"].nunique()), "seed")
    return {
        "Varied": f"{named}; {seeds}" if named else seeds,
        "Data and metric": _describe_data(context),
    }


def _describe_data(context: StudyContext) -> str:
    study, facts = context.study, context.study.facts
    texts = [f"{study.metric}, in points, higher is better"]
    if corpus := facts.get("corpus", ""):
        texts.append(f"trained on {corpus.partition(', SHA-256')[0]}")
    if study.program:
        texts.append(f"as returned by {study.program}")
    if "table" in facts:
        texts.append(f"table {facts['table'].partition(', SHA-256')[0]}")
    if evaluation := facts.get("evaluation", ""):
        texts.append(f"evaluated on {evaluation.partition(';')[0]}")
    return clean("; ".join(texts))
