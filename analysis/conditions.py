"""The conditions under which a finding holds: learning rate, training steps, batch size."""

import pandas as pd

from analysis.runs import traced_runs

CONDITIONS = ("learning_rate", "steps")
"""Settings that determine how fast the weights change, on which an optimum in MTD may depend."""


def describe_conditions(trials: pd.DataFrame) -> str:
    """Learning rate, steps and batch size of the completed runs with an MTD, as text.

    For example "at learning rate 0.001, 160 steps and batch size 64". Settings that are not columns
    are left out; the text is empty if none is a column.
    """
    runs = traced_runs(trials)
    parts = []
    for name, noun, before in (
        ("learning_rate", "learning rate", True),
        ("steps", "steps", False),
        ("batch_size", "batch size", True),
    ):
        values = sorted(runs[name].dropna().unique()) if name in runs else []
        if values:
            listed = _join([f"{float(value):g}" for value in values])
            plural = "s" if len(values) > 1 and before else ""
            parts.append(f"{noun}{plural} {listed}" if before else f"{listed} {noun}")
    return f"at {_join(parts)}" if parts else ""


def _join(texts: list[str]) -> str:
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
