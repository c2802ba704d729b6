"""A study's rows beside the published ones: which values meet, and whether the runs are alike."""

import numpy as np
import pandas as pd

from analysis.experiments.catalogue import Experiment


def find_differing(
    runs: pd.DataFrame, experiment: Experiment
) -> dict[str, tuple[float | str, ...]]:
    """The settings in which a run differs from the published ones, with all their values."""
    wanted = {"method": "mocose", **experiment.conditions}
    return {
        name: tuple(sorted(runs[name].unique()))
        for name, value in wanted.items()
        if not (_to_key(runs[name]) == _to_key(pd.Series([value]))[0]).all()
    }


def _to_key(values: pd.Series) -> pd.Series:
    """Numbers to ten digits, in words: a grid by steps gives 0.8500000000000001."""
    numeric = pd.api.types.is_numeric_dtype(values)
    return values.map(lambda value: f"{value:.10g}") if numeric else values


def _scale_widths(
    table: pd.DataFrame, published: pd.DataFrame, experiment: Experiment, width: int | None
) -> tuple[pd.Series, pd.Series]:
    """The widths of the table and of the paper as those of an encoder of `width` dimensions."""
    name = experiment.by[0]
    if width is None:
        return table[name], published[name].map(lambda _: np.nan)
    scaled = (published[name] * width / experiment.encoder_width).round()
    return table[name].replace(0, width), scaled.astype("float64")


def join_published(
    table: pd.DataFrame, experiment: Experiment, width: int | None
) -> pd.DataFrame:
    """The table with the paper's values, and words in the paper's order."""
    published = experiment.published()[[*experiment.by, "published"]]
    first = experiment.by[0]
    if pd.api.types.is_numeric_dtype(published[first]):
        here, there = table[list(experiment.by)], published[list(experiment.by)]
        if experiment.encoder_width:
            here[first], there[first] = _scale_widths(table, published, experiment, width)
        keys = {name: _to_key(there[name]) for name in there}
        values = pd.DataFrame(keys).assign(published=published["published"])
        places = pd.DataFrame({name: _to_key(here[name]) for name in here})
        joined = places.merge(values, how="left")
        return table.assign(published=joined["published"].to_numpy())
    like = table[first] if experiment.like is None else table[first].map(experiment.like)
    places = {name: place for place, name in enumerate(published[first])}
    values = like.map(published.set_index(first)["published"])
    order = like.map(places).fillna(len(places)).sort_values(kind="stable").index
    return table.assign(published=values.astype("float64")).loc[order].reset_index(drop=True)
