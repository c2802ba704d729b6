"""Topic: what the papers claim, and whether it holds in a study or in several."""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any
from urllib.parse import quote

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.claims import CLEAR, SCORE, PaperClaim, load_claims
from mtdlab.analysis.data.defaults import ALPHA
from mtdlab.analysis.data.metric import write_fixed
from mtdlab.analysis.data.tasks import POINTS, label_score
from mtdlab.analysis.experiments import EXPERIMENTS
from mtdlab.analysis.inference.claims import SMALL, SMALLER, judge_by_holm
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.questions.claim import (
    NAMES,
    UNCHANGED,
    UNITS,
    ClaimQuestion,
    ask_claims,
)
from mtdlab.analysis.questions.wording import (
    PERCENT,
    capitalise,
    clean,
    describe_interval,
    join_sentences,
    join_words,
)
from mtdlab.analysis.report.cells import format_count, list_values, make_table
from mtdlab.analysis.report.page import Table
from mtdlab.analysis.report.topics.base import Contents, Drawing, StudyContext, Topic

COLUMNS = (
    *("verdict", "name", "claim", "source", "published", "difference", "mean", "low", "high"),
    *("level", "unit", "seeds", "holm", "why", "scale", "study", "same_runs", "sharing"),
)
"""The columns of the table of claims."""
SIGNS: Mapping[str, str] = {
    "replicated": "✓",
    SMALLER: "↓",
    "contradicted": "✗",
    SMALL: "≪",
    "undecided": "?",
    "not tested": (NOT_TESTED := "–"),
}
"""The verdicts in their order on a page, each with its sign."""
ANCHORS = {
    **{experiment.file: experiment.name.replace("_", "-") for experiment in EXPERIMENTS},
    "figure2_mtd": "published",
    "figure3_mtd_by_batch": "published",
    "nearness": "geometry",
    "final": "collapse",
    "swing": "collapse",
    "rank": "spectra",
}
_MOST_NAMED, _MOST_DRAWN, _MOST_LETTERS = 5, 12, 60
RULE = (
    f"Replicated: the {PERCENT} interval of each paired difference lies on the claimed side of 0, "
    f"or, of a claim of no difference, within its margin. {capitalise(SMALLER)}: so too, but one "
    f"that is printed as {CLEAR:g} point or more is shown to be less than half of that. "
    f"Contradicted: one lies on the other side. {capitalise(SMALL)}: one is shown to be less than "
    f"half of that, on neither side of 0. Not tested: also what changed no score of a seed by more "
    f"than {UNCHANGED:g} points. Where a claim names several differences, support takes all of "
    "them and needs no correction; what is held against it is corrected for their number "
    "(Bonferroni): the interval of such a claim that is not replicated has a higher level than "
    "95 %. Each claim has its own error rate of "
    "5 %; “not with Holm's rule for all tests” is one that does not hold with one rate for all. "
    "A printed size of less than 1 point is within the scatter of the paper's own values. Tests "
    "share runs whose seed, score, alignment and uniformity are equal in all digits."
)


def tabulate_claims(contexts: Sequence[StudyContext], *, every: bool = False) -> pd.DataFrame:
    """The claims that studies are about, with their verdicts: `COLUMNS`, a row per claim and study.

    The order is that of `SIGNS`, then that of the papers. With `every`, claims that no study is
    about have a row too.
    """
    asked = [(context, question) for context in contexts for question in ask_claims(context)]
    holm = judge_by_holm([question.judged for _, question in asked])
    rows = [_list_row(*pair, is_shown=is_shown) for pair, is_shown in zip(asked, holm, strict=True)]
    _compare_runs(rows, [question for _, question in asked])
    found, places = {row["name"] for row in rows}, [claim.name for claim in load_claims()]
    if every:
        rows += [_list_missing(claim) for claim in load_claims() if claim.name not in found]
    verdicts = [*SIGNS]
    rows.sort(key=lambda row: (verdicts.index(row["verdict"]), places.index(row["name"])))
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def find_claims(context: StudyContext) -> pd.DataFrame:
    """The claims that one study is about (`tabulate_claims`).

    A difference that the answer or the table of configurations states has no interval here.
    """
    table = tabulate_claims([context])
    is_stated = [context.states_difference(mean) for mean in table["mean"]]
    table.loc[is_stated, ["low", "high"]] = math.nan
    return table


def _list_row(context: StudyContext, question: ClaimQuestion, *, is_shown: bool) -> dict[str, Any]:
    claim, judged = question.claim, question.judged
    effect, sizes = question.effect, question.sizes
    row = _list_missing(claim) | {"verdict": judged.verdict, "why": question.why}
    row |= {"study": context.study.name, "scale": _describe_scale(context, question)}
    row["holm"] = "" if math.isnan(judged.p_value) else "yes" if is_shown else "no"
    if effect is not None:
        size = effect.size
        row |= {"difference": effect.text, "seeds": judged.seeds}
        row |= {"mean": size.mean, "low": size.low, "high": size.high, "level": effect.level}
        row["published"] = f"{sizes[judged.place]:+.2f}" if sizes else ""
    return row


def _compare_runs(rows: Sequence[dict[str, Any]], questions: Sequence[ClaimQuestion]) -> None:
    """State of each test which others compare the same runs, and how many share some of them."""
    pairs = zip(rows, questions, strict=True)
    tested = [(row, asked) for row, asked in pairs if row["verdict"] != "not tested"]
    for (row, asked), (other_row, other) in permutations(tested, 2):
        own, others = asked.compared, other.compared
        if _is_part(own, others) or _is_part(others, own):
            there = "" if other_row["study"] == row["study"] else f" in {other_row['study']}"
            named = f"“{clean(other_row['claim'].rstrip('.'), most=_MOST_LETTERS)}”{there}"
            row["same_runs"] = "; ".join(filter(None, (row["same_runs"], named)))
        elif frozenset().union(*own) & frozenset().union(*others):
            row["sharing"] += 1


def _is_part(one: Sequence[frozenset[Hashable]], other: Sequence[frozenset[Hashable]]) -> bool:
    """Whether the sides of a comparison are those of another one, or parts of them."""
    return len(one) == len(other) and any(
        all(side <= whole for side, whole in zip(one, sides, strict=True))
        for sides in (other, other[::-1])
    )


def _list_missing(claim: PaperClaim) -> dict[str, Any]:
    """The row of a claim that no study is about."""
    asks = f"; studies/paper/{claim.study}.yaml asks it" if claim.study else ""
    return {
        **dict.fromkeys(("mean", "low", "high", "level"), math.nan),
        **dict.fromkeys(("difference", "holm", "scale", "study", "same_runs"), ""),
        **dict.fromkeys(("seeds", "sharing"), 0),
        "verdict": "not tested",
        "name": claim.name,
        "claim": claim.states,
        "unit": UNITS.get(claim.measure, POINTS),
        "source": claim.source,
        "published": f"{min(claim.sizes, key=abs):+.2f}" if claim.sizes else "",
        "why": claim.reason or f"no study of it here{asks}",
    }


def _describe_scale(context: StudyContext, question: ClaimQuestion) -> str:
    """Encoder, sentences, tasks, and what the sides were averaged over."""
    study, runs, claim = context.study, question.runs, question.claim
    encoder, seeds = study.ran_with.encoder, question.judged.seeds
    parts = [format_count(seeds, "seed")] if seeds else []
    parts += [encoder.name if encoder else "encoder not recorded"]
    if {"steps", "batch_size"} <= {*runs}:
        sentences = (runs["steps"] * runs["batch_size"]).dropna().astype("int64")
        ends = dict.fromkeys([sentences.min(), sentences.max()] if len(sentences) else [])
        parts += [" to ".join(f"{count:,}" for count in ends) + " sentences"] if ends else []
    measured = NAMES.get(claim.measure, claim.measure)
    is_score = claim.measure == SCORE
    parts.append(label_score(study.metric, study.evaluation_name) if is_score else measured)
    if over := question.averaged_over:
        sides = pd.concat([side for pair in question.pairs for side in pair])
        values = [f"{name} {list_values(name, sides[name].unique())}" for name in over]
        parts.append(f"averaged over {' and '.join(values)}")
    if claim.decay:
        parts.append(f"η in the paper {claim.decay}")
    return clean("; ".join(parts))


def summarise_claims(table: pd.DataFrame) -> str:
    """How many tests have each verdict, in a few words; a claim has one in each of its studies."""
    tested = table[_is_tested(table)]
    if not len(tested):
        return f"None of {format_count(table['name'].nunique(), 'claim')} was tested"
    counts, claims = Counter(tested["verdict"]), tested["name"].nunique()
    sure = Counter(tested.loc[tested["holm"] == "yes", "verdict"])
    ruled = [name for name in ("replicated", "contradicted") if counts[name]]
    if len(tested) == 1 or all(sure[name] == counts[name] for name in ruled):
        ruled = []
    limits = {name: f" ({sure[name] or 'none'} likewise)" for name in ruled}
    for name in ruled[:1]:
        limits[name] = f" ({sure[name] or 'none'} also with one error rate for all tests)"
    parts = [f"{counts[name]} {name}{limits.get(name, '')}" for name in SIGNS if counts[name]]
    of = f"{len(tested)} tests of {format_count(claims, 'claim')}"
    if claims == len(tested):
        of = format_count(claims, "tested claim")
    return f"{join_words(parts)} of {of}"


def compare_tests(table: pd.DataFrame) -> str:
    """How many claims have several tests with one verdict, and which with several; else empty."""
    same: Counter[str] = Counter()
    different = []
    for _, tests in table[_is_tested(table)].groupby("name", sort=False):
        claim, verdicts = str(tests["claim"].iloc[0]).rstrip("."), tests["verdict"].tolist()
        if len(verdicts) > 1 and len({*verdicts}) == 1:
            same[verdicts[0]] += 1
        elif len(verdicts) > 1:
            pairs = zip(verdicts, tests["study"], strict=True)
            found = "; ".join(f"{verdict} in {study}" for verdict, study in pairs)
            different.append(f"“{claim}” ({found})")
    if not (count := same.total() + len(different)):
        return ""
    alike = ", ".join(f"{amount} {verdict}" for verdict, amount in same.most_common())
    return join_sentences(
        f"{format_count(count, 'claim')} {'have' if count > 1 else 'has'} more than one test.",
        f"With the same verdict: {alike}." if same else "",
        f"With different verdicts: {', '.join(different)}." if different else "",
    )


def _is_tested(table: pd.DataFrame) -> pd.Series:
    return table["verdict"].map(SIGNS) != NOT_TESTED


def explain_claims(table: pd.DataFrame) -> str:
    """How many tests chance alone would have as claimed, and how many share runs.

    Empty where nothing was tested.
    """
    if not (tested := int(_is_tested(table).sum())):
        return ""
    expected = tested * ALPHA / 2
    # a bound is rounded up, to two digits
    digit = 10.0 ** (math.floor(math.log10(expected)) - 1)
    most = math.ceil(round(expected / digit, 9)) * digit
    return join_sentences(
        f"If none of them were true, chance would make at most {most:.2g} as claimed on average.",
        _count_shared_runs(table),
    )


def explain_verdicts(table: pd.DataFrame) -> str:
    """When a claim has which verdict; empty where nothing was tested."""
    return RULE if _is_tested(table).any() else ""


def _count_shared_runs(table: pd.DataFrame) -> str:
    """How many tests are of runs that others are of too; empty where each has runs of its own."""
    same = int((table["same_runs"] != "").sum())
    some = int(((table["same_runs"] == "") & (table["sharing"] > 0)).sum())
    counts = [f"in {same} the same runs are compared as in another one"] if same else []
    counts += [f"in {some} some of the same runs"] if some else []
    return f"Not every test is evidence of its own: {', '.join(counts)}." if counts else ""


def list_lines(table: pd.DataFrame, most: int = _MOST_NAMED) -> tuple[str, ...]:
    """The claims that were tested, a line each, in the order of the table; of many the clearest."""
    tested = table[_is_tested(table)]
    lines = []
    for row in _choose_shown(tested, most).to_dict("records"):
        ours = _name_size(row)
        if row["published"]:
            ours += f"; published {row['published']} {row['unit']}"
        lines.append(f"{_name_verdict(row)}: “{row['claim']}” Here {ours}")
    if len(tested) > most:
        chosen = "from each verdict in turn, the undecided last"
        lines.append(f"{most} of {len(tested)} tests shown, {chosen}: all are in the table below")
    return tuple(lines)


def _choose_shown(tested: pd.DataFrame, most: int) -> pd.DataFrame:
    """The rows that have room: as many of each verdict that decides, then the undecided.

    Those that hold with one error rate for all claims come first.
    """
    ranked = tested.assign(
        is_open=tested["verdict"] == "undecided",
        is_weak=tested["holm"] == "no",
    ).sort_values(["is_open", "is_weak"], kind="stable")
    ranked["place"] = ranked.groupby("verdict").cumcount()
    chosen = ranked.sort_values(["is_open", "place"], kind="stable").head(most)
    return tested.loc[chosen.index.sort_values()]


def _name_verdict(row: Mapping[Hashable, object]) -> str:
    """The verdict with its sign, and that it does not hold with one error rate for all claims."""
    verdict = str(row["verdict"])
    is_weak = verdict != "undecided" and row["holm"] == "no"
    limited = ", not with Holm's rule for all tests" if is_weak else ""
    return f"{SIGNS[verdict]} {verdict}{limited}"


def _name_size(row: Mapping[Hashable, object]) -> str:
    """The difference with its unit, its interval and the level of that."""
    mean, low, high, level = (float(str(row[name])) for name in ("mean", "low", "high", "level"))
    if math.isnan(mean):
        return ""
    unit = POINTS if row["unit"] == POINTS else f"in {row['unit']}"
    interval = describe_interval(Estimate(mean, low, high), level)
    return f"{write_fixed(mean, 2, '+')} {unit}{interval and f' ({interval})'}"


def _describe_test(row: Mapping[Hashable, Any]) -> str:
    """The difference with its sides, the study, and its scale."""
    difference = ": ".join(filter(None, (_name_size(row), row["difference"])))
    return "; ".join(filter(None, (difference, row["study"], row["scale"])))


def _describe_verdict(row: Mapping[Hashable, Any]) -> str:
    """The verdict, why or what would decide, and which other tests are of the same runs."""
    shared = row["sharing"] and f"shares runs with {format_count(row['sharing'], 'other test')}"
    if row["same_runs"]:
        shared = f"same runs as {row['same_runs']}"
    told = "; ".join(filter(None, (row["why"], shared)))
    return ": ".join(filter(None, (_name_verdict(row), told)))


def show_claims(
    table: pd.DataFrame, sections: Mapping[str, Collection[str]] | None = None
) -> Table:
    """The table of a page; of several studies its rows lead to the sections of their pages."""
    rows = table.to_dict("records")
    shown = pd.DataFrame(
        {
            "claim": [f"{row['claim']} [{row['source']}]" for row in rows],
            "verdict, why, or what would decide": [_describe_verdict(row) for row in rows],
            "printed, points": table["published"],
            "here, study and scale": [_describe_test(row) for row in rows],
        }
    )
    caption = (
        "Claims of the papers. Sizes are differences, the first side minus the second; of several "
        "that which is least like the claim. The interval is that by which the verdict is decided."
    )
    made = make_table(shown, caption=caption, csv="claims", most=len(shown))
    addresses = tuple(_find_address(row, sections) for row in rows) if sections else ()
    return replace(made, links=addresses)


def draw_claims(table: pd.DataFrame) -> Mapping[str, Drawing]:
    """The figure of the tested claims on scores, the clearest of many; none without one."""
    on_scores = table["name"].isin([each.name for each in load_claims() if each.measure == SCORE])
    tested = table[_is_tested(table) & on_scores & table["low"].notna()]
    if not len(tested):
        return {}
    shown = _choose_shown(tested, _MOST_DRAWN)
    count = f"{len(shown)} of the {len(tested)} tests on scores, from each verdict in turn. "
    drawn = shown.assign(published=pd.to_numeric(shown["published"]))
    drawing = Drawing(
        "Claims on scores, tested",
        [("", lambda ax: figures.draw_claims(drawn, ax))],
        height=0.7 + 0.42 * len(drawn),
        caption=(
            f"{count if len(shown) < len(tested) else ''}The paired difference of each claim with "
            "its interval, positive where it is as claimed: blue circles if replicated, squares if "
            "less than half as large as printed (blue: as claimed), red triangles if contradicted, "
            "grey circles if undecided. Diamonds are as published. The axis is linear up to 2 "
            "points and logarithmic beyond; intervals that are cut off go on."
        ),
        alt=f"{summarise_claims(table)}.",
        rigid=True,
    )
    return {"claims": drawing}


def _find_address(row: Mapping[Hashable, object], sections: Mapping[str, Collection[str]]) -> str:
    """The section of a study's page that has a claim's figure, else its claims; empty without one.

    `sections` are the anchors on the page of each study.
    """
    if (study := str(row["study"])) not in sections:
        return ""
    [claim] = [claim for claim in load_claims() if claim.name == row["name"]]
    place = ANCHORS.get(claim.table) or ANCHORS.get(claim.measure) or TOPIC.name
    return f"../{quote(study)}/index.html#{place if place in sections[study] else TOPIC.name}"


def _build(context: StudyContext) -> Contents | None:
    table = context.once(find_claims)
    if not len(table):
        return None
    text = (f"{summarise_claims(table)}.", explain_claims(table), explain_verdicts(table))
    return Contents(csv={"claims": table}, text=text, tables=[show_claims(table)])


TOPIC = Topic("claims", "Claims of the papers", _build, csv=["claims"])
