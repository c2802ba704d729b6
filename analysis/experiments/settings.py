"""Settings as the experiments read them: filled with defaults, as text, derived from others."""

import math
import re

import numpy as np
import pandas as pd

from analysis.frames import Settings, SettingValue
from analysis.runs import is_missing

# By default there is no number, and the encoder's own dimension is used: 0 stands for that.
_ENCODERS_OWN = "prediction_dim"
_SHARE_DECIMALS = 3
_MODEL = re.compile(r"[^:,+]*/")


def with_defaults(trials: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The trials with every setting that has a default, in place of what was not recorded.

    A study recorded before a setting existed has no column for it, or missing values. Defaults
    are filled in for the trials of the method that is the default itself, and for those without
    a recorded method: other methods may not have the setting, so their missing values stay so.
    """
    defaults = {name: setting.default for name, setting in settings.items()}
    if _ENCODERS_OWN in defaults:
        defaults[_ENCODERS_OWN] = 0
    known = {name: value for name, value in defaults.items() if value is not None}
    own = pd.Series(True, index=trials.index)
    if "method" in known and "method" in trials:
        own = trials["method"].isna() | (trials["method"] == known["method"])
    filled = trials.assign(**{name: _fill(trials, name, known[name], own) for name in known})
    numbers = [name for name, value in known.items() if type(value) in (int, float)]
    return filled.assign(**{name: pd.to_numeric(filled[name]) for name in numbers})


def _fill(trials: pd.DataFrame, name: str, value: SettingValue, own: pd.Series) -> pd.Series:
    """A column with the default where it is missing, NaN where the trial is not `own`."""
    if name not in trials:
        default = pd.Series(value, index=trials.index)
        return default if own.all() else default.where(own)
    missing = is_missing(trials[name])
    if not missing.any():
        return trials[name]
    return trials[name].mask(missing & own, value).mask(missing & ~own)


def format_setting(value: float) -> str:
    """A number to five digits as settings are written: 0.85, 5e-9."""
    return re.sub(r"e-0*", "e-", f"{value:.5g}")


def format_value(name: str, value: object) -> str:
    """The value of a setting in a sentence: 0.85, true, none, first-last."""
    missing = value in (None, "") or (isinstance(value, float) and math.isnan(value))
    if name == _ENCODERS_OWN and (missing or value == 0):
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
    """The runs with known augmentations, all in one column, the FGSM step among them.

    Models are named without the folder or the owner in front.
    """
    runs = runs[runs["augmentation"].notna()]
    steps = [f"fgsm:{format_setting(value)}" if value > 0 else "" for value in runs["fgsm_epsilon"]]
    names = [_MODEL.sub("", text) for text in runs["augmentation"].astype("str")]
    joined = [
        "+".join(part for part in (name if name != "none" else "", step) if part) or "none"
        for name, step in zip(names, steps, strict=True)
    ]
    return runs.assign(augmented=pd.Series(joined, index=runs.index, dtype="str"))
