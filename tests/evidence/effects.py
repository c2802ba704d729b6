"""Error rates and power of effects of settings and of all pairs of configurations: `make evidence`.

A study is S seeds by the C configurations of a factorial design; score = effect of the first
setting + deviations of the seed + effects of the evaluation items + error of standard deviation 1.
Seeds deviate in what each value of a setting does, in what two settings do together, or between the
halves of the configurations. Where no setting has an effect, whatever is significant is false; in
the other cells the first setting rises by 1, 2 or 4 points over its values, or does so at the last
value of the second alone: then the two have an interaction of 2 or 4 points. Letters: B simulated
studies, S seeds, C configurations, V settings.
"""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd
from bounds import bound_below
from joblib import Parallel, delayed

from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.inference.shapes import shape_tests
from mtdlab.analysis.inference.simultaneous import compare_own
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.statistics.configurations import effect_contrasts, interaction_contrasts

Rates = dict[str, float | str]
ALPHA = 0.05
SEEDS, DESIGNS = (3, 5, 10), ((2, 4), (2, 2, 2, 2), (3, 3), (4, 4))


@dataclass(frozen=True)
class Case:
    """Standard deviations of the seed's and the items' effects, and that of the first setting.

    Attributes:
        each: of what a value of a setting does to a seed, by setting; others: of the settings
            after these.
        pair: of what values of the first two settings do together.
        halves: of what the halves of the configurations do.
        items: of the evaluation items on a configuration, in all seeds alike.
        effect: the last value of the first setting minus the first one, in points.
        together: the same, at the last value of the second setting alone.
    """

    name: str
    each: tuple[float, ...] = ()
    others: float = 0.0
    pair: float = 0.0
    halves: float = 0.0
    items: float = 0.0
    effect: float = 0.0
    together: float = 0.0

    def draw(self, rng: np.random.Generator, tables: int, seeds: int, design: Floats) -> Floats:
        """Scores (B, S, C) of configurations with these numbers of values, (C, V)."""
        count = len(design)
        scores = rng.standard_normal((tables, seeds, count))
        scores += self.items * rng.standard_normal((tables, 1, count))
        rise = design[:, 0] / design[:, 0].max()
        scores += (self.effect + self.together * (design[:, 1] == design[:, 1].max())) * rise
        scales = [*self.each, *[self.others] * design.shape[1]]
        pairs = np.unique(design[:, :2], axis=0, return_inverse=True)[1]
        halves = 2 * np.arange(count) // count
        groups = [*zip(scales, design.T, strict=False), (self.pair, pairs), (self.halves, halves)]
        for scale, group in groups:
            own = rng.standard_normal((tables, seeds, count))
            scores += scale * own[..., group.ravel()]
        return np.asarray(scores)


# standard deviations relative to the error, in the recorded 4 x 4 grids of 4 seeds of the built-in
# data: of what η and K/N do, with in-batch negatives and with those of the queue alone
_RECORDED = {"in-batch": (0.39, 0.72), "queue": (0.63, 0.63)}
NULLS = (
    Case("independent"),
    Case("each setting, 1", others=1),
    Case("each setting, 3", others=3),
    Case("first setting, 1", each=(1,)),
    Case("first setting, 3", each=(3,)),
    Case("two settings together, 1", pair=1),
    Case("two settings together, 3", pair=3),
    Case("two families, 1", halves=1),
    Case("two families, 2", halves=2),
    Case("two families, 3", halves=3),
    *(Case(f"as recorded, {name}", each=sizes) for name, sizes in _RECORDED.items()),
    Case("items, 1", items=1),
    Case("each setting and items, 1", others=1, items=1),
    Case("each setting, 3, and items, 1", others=3, items=1),
)
EFFECTS = (
    *(Case("independent", effect=effect) for effect in (1, 2, 4)),
    *(Case("each setting, 1", others=1, effect=effect) for effect in (1, 2, 4)),
    *(Case("independent", together=size) for size in (2, 4)),
)


def measure(values: tuple[int, ...], seeds: int, case: Case, datasets: int, seed: int) -> Rates:
    """One cell: shares of studies in which something is significant.

    first: the effect of the first setting; effects: that of any setting; interaction: of any two
    settings; pairs: any two configurations. An effect of the first setting is no interaction.
    """
    design = np.array(list(product(*map(range, values))))
    rng = np.random.default_rng([seed, seeds, *values])
    tables = case.draw(rng, datasets, seeds, design)
    count = len(design)
    items = case.items**2 * (np.eye(count) - 1 / count) if case.items else None
    fit = Blocks(np.ones((seeds, count), dtype=bool)).fit(tables, items)
    columns = [pd.Series(column) for column in design.T]
    contrasts = [effect_contrasts(column) for column in columns]
    family, _ = compare_own(tables[0], np.vstack(contrasts), items)
    estimates, widths = family.intervals(fit, ALPHA)
    effects = np.abs(estimates) > widths
    rows = [interaction_contrasts(one, other) for one, other in combinations(columns, 2)]
    together, _ = compare_own(tables[0], np.vstack(rows), items)
    interactions, ends = together.intervals(fit, ALPHA)
    tests = shape_tests(tables[0], items=items)
    differences, bounds = tests.all_pairs.intervals(fit, ALPHA)
    shares = {
        "first": effects[:, : len(contrasts[0])].any(axis=1),
        "effects": effects.any(axis=1),
        "interaction": (np.abs(interactions) > ends).any(axis=1),
        "pairs": (np.abs(differences) > bounds).any(axis=1),
    }
    cell = " x ".join(map(str, values))
    named: Rates = {"design": cell, "seeds": seeds, "seeds deviate in": case.name}
    rates = {name: float(found.mean()) for name, found in shares.items()}
    return {**named, "effect": case.effect, "together": case.together, **rates, "n": datasets}


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bounds of false findings (Bonferroni over cells)."""
    cells = list(product(DESIGNS, SEEDS, (*NULLS, *EFFECTS)))
    table = pd.DataFrame(
        Parallel(n_jobs=-1)(delayed(measure)(*cell, datasets, seed) for cell in cells)
    )
    no_interaction = table["together"] == 0
    no_effect = no_interaction & (table["effect"] == 0)
    for kind in ("effects", "interaction", "pairs"):
        table[f"{kind}_low99"] = bound_below(table[kind], table["n"], int(no_effect.sum()))
        null = no_interaction if kind == "interaction" else no_effect
        table.loc[~null, f"{kind}_low99"] = np.nan
    return table
