"""The choice of the values of nuisance settings, such as the learning rate of each configuration.

The scores are those on dev data, of trials whose seeds take no part in what is reported. A block is
a configuration with a seed: every value of a group is tried on the same blocks.
"""

from typing import Any

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import NuisanceTrials

_COLUMNS = ("n", "mean", "difference", "difference_se", "chosen", "at_end")


def compare_nuisance_values(nuisance: NuisanceTrials) -> pd.DataFrame:
    """The tried values of each group, in the order in which the groups were begun.

    Returns:
        group; a column per nuisance setting; n: blocks with a score; mean: of the score on dev
        data, x 100; difference: to the value with the highest mean, in points, with its standard
        error over blocks (NaN with one block); chosen; at_end: whether it is the chosen one and
        the lowest or highest number tried. The difference is NaN of a value of which a trial has
        no score, such as one that diverged: it is not chosen.
    """
    trials = nuisance.trials
    # before the first trial its frame may lack columns
    groups = trials.groupby("group", sort=False) if len(trials) else ()
    tables = [_compare(group, runs, nuisance) for group, runs in groups]
    columns = ["group", *nuisance.names, *_COLUMNS]
    return (
        pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)
    )


def choose_nuisance_values(nuisance: NuisanceTrials) -> dict[str, dict[str, Any]]:
    """The values with the highest mean of each group, by setting.

    Of equal ones the first that was tried. A group none of whose values has all scores is left out.
    """
    table = compare_nuisance_values(nuisance)
    best = table[table["difference"] == 0].drop_duplicates("group")
    return dict(zip(best["group"], best[[*nuisance.names]].to_dict("records"), strict=True))


def _compare(group: Any, runs: pd.DataFrame, nuisance: NuisanceTrials) -> pd.DataFrame:
    names = list(nuisance.names)
    value = runs.groupby(names, sort=False).ngroup()
    complete = runs["selected"].where(runs["state"] == "COMPLETE")
    scores = complete.groupby([runs["configuration"], runs["seed"], value]).first().unstack()
    tried = runs.drop_duplicates(names)[names].reset_index(drop=True)
    means, is_whole = scores.mean(), scores.notna().all()
    paired = scores.sub(scores[means.where(is_whole, -np.inf).idxmax()], axis="index")
    values, numbers = nuisance.chosen.get(str(group)), tried.select_dtypes("number")
    chosen = pd.Series(data=values is not None, index=tried.index)
    if values is not None:
        chosen = (tried[[*values]] == pd.Series(values)).all(axis=1)
    is_end = ((numbers == numbers.min()) | (numbers == numbers.max())).any(axis=1)
    return tried.assign(
        group=group,
        n=scores.notna().sum(),
        mean=means,
        difference=paired.mean().where(is_whole),
        difference_se=paired.sem().where(is_whole).replace(0.0, np.nan),
        chosen=chosen,
        at_end=chosen & is_end,
    )
