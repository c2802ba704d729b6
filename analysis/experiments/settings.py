"""Settings as the experiments read them: those that a study did not record, and those made of
others.
"""

import math
import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

# What trainers did before they had the setting: a study recorded then has no column for it.
# A prediction_dim of 0 stands for none given, which is the encoder's own.
UNRECORDED: Mapping[str, float | str] = {
    "method": "mocose",
    "augmentation": "none",
    "queue_clusters": 0,
    "fgsm_epsilon": 5e-9,
    "projection_layers": 1,
    "prediction_layers": 2,
    "prediction_dim": 0,
}
_SHARE_DECIMALS = 3
_MODEL = re.compile(r"[^:,+]*/")


def with_unrecorded(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials with every setting of `UNRECORDED`, and its value where one has none."""
    columns = {
        name: trials[name].where(trials[name].notna(), value) if name in trials else value
        for name, value in UNRECORDED.items()
    }
    filled = trials.assign(**columns)
    numbers = [name for name, value in UNRECORDED.items() if not isinstance(value, str)]
    return filled.assign(**{name: pd.to_numeric(filled[name]) for name in numbers})


def format_setting(value: float) -> str:
    """A number to five digits as settings are written: 0.85, 5e-9."""
    return re.sub(r"e-0*", "e-", f"{value:.5g}")


def word_value(name: str, value: object) -> str:
    """The value of a setting as a sentence has it: 0.85, true, none, first-last."""
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    if name == "prediction_dim" and (missing or value == 0):
        return "the encoder's"
    if missing:
        return "none"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | np.number):
        return format_setting(float(value))
    return str(value)


def with_share(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that have a queue, with the share of it that starts as random vectors."""
    runs = runs[runs["queue_size"] > 0]
    share = runs["initial_queue_size"] / runs["queue_size"]
    return runs.assign(share=share.round(_SHARE_DECIMALS))


def with_augmented(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with all that changes their sentences in one column, FGSM's step with it.

    Models go by their own names, without the folder or the owner in front.
    """
    steps = [f"fgsm:{format_setting(value)}" if value else "" for value in runs["fgsm_epsilon"]]
    names = [_MODEL.sub("", text) for text in runs["augmentation"].astype("str")]
    joined = [
        "+".join(part for part in (name if name != "none" else "", step) if part) or "none"
        for name, step in zip(names, steps, strict=True)
    ]
    return runs.assign(augmented=pd.Series(joined, index=runs.index, dtype="str"))
