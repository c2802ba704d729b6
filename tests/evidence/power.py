"""How far the power that `mtdlab plan` promises is from that of simulated studies.

Each design is planned as `plan` does it (`mtdlab.analysis.inference.power`): with so many seeds a
peak, any rise, or a rise up to its end is to be found in 80 % of studies, or a flat score to be
shown to be flat; with
looks, in the share that is stated. Fresh studies are then drawn with other random numbers, with
exactly that number of seeds and with the covariances that the plan was given, and are judged as a
page judges them: by all rules of the verdict, and with critical values for the share of the items
in the variance of the study's own runs (rounded to 10 %, so that studies share them). Studies with
looks end as a sweep ends them. Where a covariance was recorded, the studies are drawn with it as it
is, and the plan has the slopes, curvatures and variances that it takes from it.

Letters: B studies, S seeds, L levels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from default_study import RECORDED
from errors import MEASURED
from joblib import Parallel, delayed
from sequential import Outcome, Plan, run_until

from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.inference.looks import boundaries_at
from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.analysis.inference.power import (
    POWER,
    PlannedDesign,
    Target,
    compute_targets,
    peak_effects,
    slope_effects,
)
from mtdlab.analysis.inference.scatter import (
    Interpolated,
    Scatter,
    assume_scatter,
    estimate_errors,
)
from mtdlab.analysis.inference.shapes import UNDECIDED, shape_tests
from mtdlab.analysis.measures import Floats

ALPHA, MARGIN = 0.05, 0.5
_STEP = 0.1
"""Studies whose variances differ by less than this share are judged with one critical value."""


@dataclass(frozen=True)
class Design:
    """Levels (L,), what a plan assumes, and the covariances that studies are drawn with."""

    name: str
    distance: Floats
    scatter: Scatter
    errors: Floats
    items: Floats | None

    def draw(self, rng: np.random.Generator, studies: int, seeds: int, effects: Floats) -> Floats:
        """Scores, (B, S, L)."""
        scores = effects + 5 * rng.standard_normal((studies, seeds, 1))
        scores += _normal(rng, self.errors, (studies, seeds))
        if self.items is not None:
            scores += _normal(rng, self.items, (studies, 1))
        return np.asarray(scores)


def _normal(rng: np.random.Generator, covariance: Floats, shape: tuple[int, int]) -> Floats:
    # a recorded covariance has rounded entries, and an eigenvalue of 0
    drawn = rng.multivariate_normal(
        np.zeros(len(covariance)), covariance, shape, method="eigh", check_valid="ignore"
    )
    return np.asarray(drawn)


def assumed(name: str, distance: Floats, items: int, deviation: float) -> Design:
    """A design of which nothing was recorded."""
    scatter = assume_scatter(distance, deviation, items)
    drawn = None if scatter.items is None else scatter.items.at(distance)
    return Design(name, distance, scatter, scatter.errors.at(distance), drawn)


def recorded(name: str, table: pd.DataFrame, items: Floats | None) -> Design:
    """A design whose runs were recorded: a table (S, L) by seed and MTD."""
    levels = LevelScores(table)
    residuals = levels.scores - levels.scores.mean(axis=1, keepdims=True)
    errors = np.cov(residuals, rowvar=False)
    of_items = None if items is None else Interpolated(levels.distance, items)
    scatter = Scatter(estimate_errors(levels), of_items, 0 if items is None else 1500)
    return Design(name, levels.distance, scatter, errors, items)


def of_covariance(study: str, items: int) -> Design:
    """A design whose runs have a recorded covariance, (L, L): 400 seeds that have it exactly."""
    chosen = MEASURED[MEASURED["study"] == study]
    covariance = chosen.drop(columns=["study", "mtd"]).to_numpy(dtype=np.float64)
    drawn = np.random.default_rng(1).standard_normal((400, len(covariance)))
    drawn -= drawn.mean(axis=0)
    white = drawn @ np.linalg.inv(np.linalg.cholesky(np.cov(drawn, rowvar=False))).T
    values, vectors = np.linalg.eigh(covariance)
    scores = white @ (vectors * np.sqrt(np.maximum(values, 0))).T
    found = recorded(f"as measured, {study}", pd.DataFrame(scores, columns=chosen["mtd"]), None)
    of_items = assume_scatter(found.distance, items=items).items
    scatter = Scatter(found.scatter.errors, of_items, items)
    return Design(found.name, found.distance, scatter, found.errors, of_items.at(found.distance))


def judge(design: Design, scores: Floats, alpha: float, margin: float) -> list[str]:
    """The verdicts of studies, (B, S, L)."""
    blocks = Blocks(np.ones(scores.shape[1:], dtype=bool), np.log(design.distance))
    shares = np.round(np.log(blocks.fit(scores).typical) / _STEP)
    shapes = np.full(len(scores), "", dtype=object)
    for share in np.unique(shares):
        chosen = shares == share
        tests = shape_tests(scores[chosen][0], design.distance, design.items)
        fit = tests.fit(scores[chosen])
        shapes[chosen] = tests.classify(fit, alpha, margin).shape
    return shapes.tolist()


def designs() -> Iterator[tuple[Design, float]]:
    """Designs, each with the points of the peak and of the slope that it is planned for."""
    three, five, seven = (
        np.array([10.0, 18, 208]),
        np.geomspace(10, 208, 5),
        np.geomspace(5, 200, 7),
    )
    yield assumed("assumed, 3 levels", three, 1500, 1.5), 3.0
    yield assumed("assumed, 3 levels, no items", three, 0, 1.5), 2.0
    yield assumed("assumed, 5 levels", five, 1500, 1.5), 2.5
    yield assumed("assumed, 7 levels, no items", seven, 0, 1.5), 2.0
    yield assumed("assumed, 9 levels", np.geomspace(5, 200, 9), 5000, 1.0), 2.0
    yield assumed("assumed, 5 levels, few seeds", five, 5000, 1.0), 4.0
    runs = pd.read_csv(RECORDED / "default_study_runs.csv")
    table = runs.pivot(index=["part", "seed"], columns="ema_decay", values="score")
    items = pd.read_csv(RECORDED / "default_study_items.csv", index_col="mtd")
    table.columns = items.index
    yield recorded("default study", table, items.to_numpy()), 4.5
    yield of_covariance("160 steps", 1500), 3.0
    yield of_covariance("640 steps", 1500), 6.0


def plan(
    design: Design, effect: float, looks: Sequence[int], alphas: Sequence[float]
) -> dict[str, Target]:
    """The first target of each kind: of the levels of the design, which are three or more."""
    found = compute_targets(
        PlannedDesign(design.distance),
        looks,
        alphas,
        effect=effect,
        margin=MARGIN,
        scatter=design.scatter,
        alpha=ALPHA,
    )
    return {target.kind: target for target in reversed(found)}


SOUGHT: Mapping[str, tuple[str, list[str]]] = {
    "peaked": ("peak", ["peaked"]),
    "any rise": ("slope", ["rising", "rising, lower at the end", "rising, end open"]),
    "rising": ("end", ["rising"]),
}
"""What a plan states the power of: its kind there, and the verdicts that find it."""


def effects_of(name: str, design: Design, effect: float) -> Floats:
    """The means of the levels, (L,): a peak, or a slope up to the last one."""
    truth = peak_effects if name == "peaked" else slope_effects
    return np.asarray(truth(design.distance, effect))


def measure(design: Design, effect: float, studies: int, seed: int) -> list[dict[str, object]]:
    """What a plan promises of one design, and the shares of studies, as rows."""
    rng = np.random.default_rng([seed, len(design.distance), int(100 * effect)])
    targets = plan(design, effect, (10,), (ALPHA,))
    found = []
    for name, (kind, verdicts) in SOUGHT.items():
        if seeds := targets[kind].needed.seeds:
            scores = design.draw(rng, studies, seeds, effects_of(name, design, effect))
            power = np.isin(judge(design, scores, ALPHA, MARGIN), verdicts).mean()
            found.append(_row(design, effect, name, seeds, POWER, float(power), studies))
    margin = targets["flat"].points
    scores = design.draw(rng, studies, 10, 0 * design.distance)
    power = np.mean([verdict == "flat" for verdict in judge(design, scores, ALPHA, margin)])
    found.append(_row(design, margin, "flat", 10, POWER, float(power), studies))
    return found + measure_looks(design, effect, rng, studies)


def measure_looks(
    design: Design, effect: float, rng: np.random.Generator, studies: int
) -> list[dict[str, object]]:
    """The same of looks at 5, 7, 9 and 13 seeds, where studies end as sweeps end them.

    With the bias of the differences of studies that end early.
    """
    looks = (5, 7, 9, 13)
    alphas = boundaries_at(looks, ALPHA).nominal.tolist()
    targets = plan(design, effect, looks, alphas)
    planned, found = Plan(tuple(design.distance.tolist()), looks), []
    for name, (kind, verdicts) in SOUGHT.items():
        effects = effects_of(name, design, effect)
        scores = design.draw(rng, studies, looks[-1], effects)
        outcome = run_until(scores, planned, items=design.items)
        power, promised = float(np.isin(outcome.verdict, verdicts).mean()), targets[kind].found
        row = _row(design, effect, f"{name}, looks", looks[-1], promised, power, studies)
        found.append(row | find_bias(outcome, effects, looks[-1]))
    return found


def find_bias(outcome: Outcome, truth: Floats, seeds: int) -> dict[str, object]:
    """By how much studies that end early overstate the best level minus the lowest, in points.

    The share of the studies that end before the last look with a peak or a trend, and the mean of
    their estimate minus the true difference of the same two levels.
    """
    decided = ~np.isin(outcome.verdict, ("flat", *UNDECIDED))
    early = decided & (outcome.runs < seeds * len(truth))
    estimates = outcome.effects[early]
    at = np.arange(len(estimates))
    best, lowest = estimates.argmax(axis=1), estimates.argmin(axis=1)
    bias = estimates[at, best] - estimates[at, lowest] - (truth[best] - truth[lowest])
    return {"early": float(early.mean()), "bias": float(bias.mean()) if len(bias) else np.nan}


def _row(
    design: Design,
    effect: float,
    verdict: str,
    seeds: int,
    promised: float | None,
    power: float,
    studies: int,
) -> dict[str, object]:
    return {
        "design": design.name,
        "levels": len(design.distance),
        "items": design.scatter.count,
        "points": effect,
        "verdict": verdict,
        "seeds": seeds,
        "promised": promised,
        "simulated": power,
        "difference": power - (promised or 0.0),
        "n": studies,
    }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """A row per design and verdict: the share that is promised, and that of simulated studies."""
    found = Parallel(n_jobs=-1)(
        delayed(measure)(design, effect, datasets, seed) for design, effect in designs()
    )
    return pd.DataFrame([row for design in found for row in design])
