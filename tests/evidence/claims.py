"""How often a claim of a paper that is not true is replicated by chance: `make evidence`.

Scores of a run have an error of standard deviation 1. A claim is false where its sides are alike;
of a claim that they are alike, where they differ by its margin. In cells of a choice each side has
the best of three learning rates by seeds of its own, the two lower ones by `apart`; a claim is
tested where both sides got the same rate. Letters: S seeds, K differences, P evaluation items.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from bounds import bound_below
from joblib import Parallel, delayed

from mtdlab.analysis.data.claims import PaperClaim
from mtdlab.analysis.data.frames import NuisanceTrials, RecordedSetting, StudyFrames
from mtdlab.analysis.inference.claims import AS_CLAIMED, SMALL, judge_claim
from mtdlab.analysis.inference.intervals import variance_of_items
from mtdlab.analysis.inference.pairing import Paired
from mtdlab.analysis.questions.claim import ClaimQuestion
from mtdlab.analysis.questions.results import StudyResults

SEEDS, OTHERS, ITEMS = (2, 3, 5, 8), (1, 8), 100
ERRORS = ("normal", "one side scatters 3 times as much", "t with 3 degrees of freedom", "items")
CHOICE_SEEDS, APART = (1, 5), (0.0, 1.0, 2.0)
SIZE = 2.0
"""A printed size, which is the margin of a claim of no difference too."""


def draw(
    rng: np.random.Generator, seeds: int, others: int, errors: str, mean: float
) -> list[Paired]:
    """K differences of a first side to others, of the same seeds; each has this mean."""
    shape = others + 1, seeds
    scores = rng.standard_t(3, shape) if errors.startswith("t ") else rng.standard_normal(shape)
    if errors.startswith("one"):
        scores[0] *= 3
    differences = mean + scores[0] - scores[1:]
    if errors != "items":
        return [Paired(values) for values in differences]
    # an item adds the same to every seed; the mean over items has as much variance as a run
    influences = rng.standard_normal((others, 1, ITEMS)) * np.sqrt(ITEMS)
    influences = influences + 0.3 * rng.standard_normal((others, seeds, ITEMS)) * np.sqrt(ITEMS)
    values = differences + influences.mean(axis=-1)
    return [
        Paired(one, variance_of_items(of_one), ITEMS)
        for one, of_one in zip(values, influences, strict=True)
    ]


def measure(seeds: int, others: int, errors: str, datasets: int, seed: int) -> dict[str, object]:
    """Of one design, the shares of false verdicts on each kind of claim."""
    rng = np.random.default_rng([seed, seeds, others, ERRORS.index(errors)])
    names = ("more", "more_of_one", "alike", "contradicted", "alike_contradicted")
    counts = dict.fromkeys(names, 0)
    small = [SIZE / 2] * others
    for _ in range(datasets):
        null = draw(rng, seeds, others, errors, 0.0)
        apart = draw(rng, seeds, others, errors, SIZE)
        counts["more"] += judge_claim(null, small=small).verdict in AS_CLAIMED
        # the least favourable: all differences but one are clear
        others_apart = [replace(one, values=one.values + 30) for one in null[1:]]
        verdict = judge_claim([null[0], *others_apart], small=small).verdict
        counts["more_of_one"] += verdict in AS_CLAIMED
        counts["alike"] += judge_claim(apart, alike=SIZE).verdict == "replicated"
        counts["contradicted"] += judge_claim(apart, small=small).verdict in ("contradicted", SMALL)
        verdict = judge_claim(null, alike=SIZE).verdict
        counts["alike_contradicted"] += verdict == "contradicted"
    rates = {f"{name}_false": count / datasets for name, count in counts.items()}
    return {"seeds": seeds, "differences": others, "errors": errors, **rates, "n": datasets}


CLAIM = PaperClaim("c", "s", "x.", compare={"ema_decay": 0.9}, against=[{"ema_decay": 0.5}])
SETTINGS = {
    name: RecordedSetting(name, default="mocose" if name == "method" else None)
    for name in ("method", "ema_decay", "learning_rate")
}


def answer_with_choice(rng: np.random.Generator, seeds: int, own: int, apart: float) -> str:
    """The verdict on sides that are alike at every rate, each at the rate chosen for it."""
    rates = np.array([1.0, 2.0, 3.0])
    effects = -apart * np.abs(rates - 2)
    tried = effects + rng.standard_normal((2, 3)) / np.sqrt(own)
    chosen = tried.argmax(axis=1)
    rows = [
        {"seed": one, "ema_decay": decay, "learning_rate": rates[at], "score": effects[at]}
        for decay, at in zip((0.9, 0.5), chosen, strict=True)
        for one in range(seeds)
    ]
    runs = pd.DataFrame(rows).assign(state="COMPLETE", number=range(len(rows)), mtd=np.nan)
    runs["score"] += rng.standard_normal(len(runs))
    tuning = NuisanceTrials(("learning_rate",), (), 0, {}, runs.iloc[:0])
    study = StudyFrames("s", "a", len(runs), runs, settings=SETTINGS, tuning=tuning)
    return ClaimQuestion(StudyResults(study), CLAIM).judged.verdict


def measure_choice(own: int, apart: float, datasets: int, seed: int) -> dict[str, object]:
    """Of five seeds, the shares that are tested and replicated after a choice by `own` seeds."""
    rng = np.random.default_rng([seed, own, int(10 * apart)])
    found = [answer_with_choice(rng, 5, own, apart) for _ in range(datasets)]
    cell = {"seeds": 5, "differences": 1, "errors": "choice", "choice_seeds": own, "apart": apart}
    tested = np.mean([verdict != "not tested" for verdict in found])
    rate = np.mean([verdict == "replicated" for verdict in found])
    return {**cell, "more_false": rate, "tested": tested, "n": datasets}


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bound of false replications (Bonferroni over cells)."""
    tasks = [delayed(measure)(*cell, datasets, seed) for cell in product(SEEDS, OTHERS, ERRORS)]
    tasks += [
        delayed(measure_choice)(*cell, datasets, seed) for cell in product(CHOICE_SEEDS, APART)
    ]
    table = pd.DataFrame(Parallel(n_jobs=-1)(tasks))
    for kind in ("more", "more_of_one", "alike"):
        known = table[table[f"{kind}_false"].notna()]
        bounds = bound_below(known[f"{kind}_false"], known["n"], len(known))
        table.loc[known.index, f"{kind}_low99"] = bounds
    return table
