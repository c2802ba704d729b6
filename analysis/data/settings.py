"""Settings of trials: filled with defaults, and formatted as text."""

import math
import re

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import Settings, SettingValue
from mtdlab.analysis.data.runs import is_missing

# The default is another dimension, recorded as a missing value; here it is 0.
_UNSET = {
    "prediction_dim": "the encoder's",
    "predictor_hidden_dim": "its output's",
    "encoder_layers": "all",
}
"""What a missing value of a number means."""
_WORDS = {
    "ema_decay": "EMA decay",
    "queue_size": "queue size",
    "batch_size": "batch size",
    "initial_queue_size": "initial queue size",
    "queue_slice": "queue slice",
    "positive_branch": "positive branch",
    "learning_rate": "learning rate",
    "prediction_dim": "prediction dimension",
    "prediction_layers": "prediction layers",
    "projection_layers": "projection layers",
    "fgsm_epsilon": "FGSM step ε",
    "in_batch_negatives": "in-batch negatives",
}
"""Settings in the words of the papers, for sentences and the names of rows."""


def with_defaults(trials: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The trials with defaults in place of settings that were not recorded.

    A study recorded before a setting existed has no column for it, or missing values. Defaults
    are filled in for trials of the default method and for trials without a recorded method. Other
    methods may lack the setting, so their missing values are kept.
    """
    defaults = {name: setting.default for name, setting in settings.items()}
    defaults |= {name: 0 for name in _UNSET if name in defaults}
    known = {name: value for name, value in defaults.items() if value is not None}
    fillable = pd.Series(True, index=trials.index)
    if "method" in known and "method" in trials:
        fillable = trials["method"].isna() | (trials["method"] == known["method"])
    return trials.assign(
        **{
            name: _fill(trials, name, value, fillable)
            for name, value in known.items()
            # whole numbers and truth values are never missing, nor numbers written as text
            if name not in trials or trials[name].dtype.kind not in "biu"
        }
    )


def _fill(trials: pd.DataFrame, name: str, value: SettingValue, fillable: pd.Series) -> pd.Series:
    """A column with its missing values replaced by the default, by NaN where not `fillable`."""
    if name not in trials:
        default = pd.Series(value, index=trials.index)
        return default if fillable.all() else default.where(fillable)
    column = trials[name]
    missing = is_missing(column)
    if missing.any():
        column = column.mask(missing & fillable, value).mask(missing & ~fillable)
    if type(value) not in (int, float):
        return column
    numbers = pd.to_numeric(column, errors="coerce")
    return column if (numbers.isna() & column.notna()).any() else numbers


def name_setting(name: object) -> str:
    """A setting in words, such as EMA decay; of other columns the name itself."""
    return _WORDS.get(str(name), str(name))


def format_setting(value: float) -> str:
    """A number to five significant digits, such as 0.85 or 5e-9."""
    return re.sub(r"e-0*", "e-", f"{value:.5g}")


def format_value(name: str, value: object) -> str:
    """The value of a setting as text, such as 0.85, true, none or first-last."""
    missing = value in (None, "") or (isinstance(value, float) and math.isnan(value))
    if name in _UNSET and (missing or value == 0):
        return _UNSET[name]
    if missing:
        return "none"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | float | np.number):
        return format_setting(float(value))
    return str(value)


def write_setting(name: str, value: object) -> str:
    """A setting with its value as text: learning rate 0.001."""
    return f"{name_setting(name)} {format_value(name, value)}"
