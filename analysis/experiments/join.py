"""Joins a study's rows to the published ones, and compares the settings of both."""

import numpy as np
import pandas as pd

from analysis.experiments.catalogue import Experiment


def find_differing(
    runs: pd.DataFrame, experiment: Experiment
) -> dict[str, tuple[float | str, ...]]:
    """Settings in which a run differs from the published runs, with all values of the runs."""
    wanted = {"method": experiment.method, **experiment.conditions}
    return {
        name: tuple(sorted(runs[name].unique()))
        for name, value in wanted.items()
        if name in runs and not (_to_key(runs[name]) == _to_key(pd.Series([value]))[0]).all()
    }


def _to_key(values: pd.Series) -> pd.Series:
    """Numbers to ten digits, as text: a grid over a range may contain 0.8500000000000001."""
    if not pd.api.types.is_numeric_dtype(values):
        return values
    return pd.Series([f"{value:.10g}" for value in values], index=values.index, dtype="str")


def _match_numbers(
    table: pd.DataFrame, published: pd.DataFrame, experiment: Experiment, width: int | None
) -> pd.Series:
    """The published value of each row; widths are compared relative to the encoder's dimension."""
    by = list(experiment.by)
    here, there = table[by].astype("float64"), published[by].astype("float64")
    if experiment.encoder_width:
        share = np.nan if width is None else width / experiment.encoder_width
        there[by[0]] = (there[by[0]] * share).round()
        here[by[0]] = here[by[0]].replace(0.0, width or 0.0)
    keys = pd.DataFrame({name: _to_key(there[name]) for name in by})
    # for a narrow encoder two published widths may round to the same; both are left out
    values = keys.assign(published=published["published"]).drop_duplicates(by, keep=False)
    rows = pd.DataFrame({name: _to_key(here[name]) for name in by})
    return rows.merge(values, on=by, how="left")["published"]


def join_published(table: pd.DataFrame, experiment: Experiment, width: int | None) -> pd.DataFrame:
    """The table with the published values; rows of text are in the published order.

    table  from `summarise`, by the experiment's settings.
    width  dimension of the study's encoder; None if not known: then no width is matched.
    """
    published = experiment.published()[[*experiment.by, "published"]]
    first = experiment.by[0]
    if pd.api.types.is_numeric_dtype(published[first]):
        return table.assign(published=_match_numbers(table, published, experiment, width))
    like = table[first] if experiment.like is None else table[first].map(experiment.like)
    places = {name: place for place, name in enumerate(published[first])}
    values = like.map(published.set_index(first)["published"])
    order = like.map(places).fillna(len(places)).sort_values(kind="stable").index
    return table.assign(published=values.astype("float64")).loc[order].reset_index(drop=True)
