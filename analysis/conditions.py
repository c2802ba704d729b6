"""The conditions under which a finding holds: learning rate, steps, what is fixed of MTD."""

import pandas as pd

from analysis.runs import traced_runs

CONDITIONS = ("learning_rate", "steps")
"""Settings that determine how fast the weights change, on which an optimum in MTD may depend."""
_WHERE_FIXED = ("ema_decay", "queue_size")


def describe_conditions(trials: pd.DataFrame) -> str:
    """Learning rate, steps and batch size of the completed runs with an MTD, as text.

    Before the batch size stand the EMA decay and the queue size where they were fixed: with it they
    make up MTD. For example "at learning rate 0.001, 160 steps, queue size 512 and batch size 64".
    Settings that are not columns are left out; the text is empty if none is a column.
    """
    runs = traced_runs(trials)
    parts = []
    for name, noun, before in (
        ("learning_rate", "learning rate", True),
        ("steps", "steps", False),
        ("ema_decay", "EMA decay", True),
        ("queue_size", "queue size", True),
        ("batch_size", "batch size", True),
    ):
        values = sorted(runs[name].dropna().unique()) if name in runs else []
        if values and not (name in _WHERE_FIXED and len(values) > 1):
            listed = _join([f"{float(value):g}" for value in values])
            plural = "s" if len(values) > 1 and before else ""
            parts.append(f"{noun}{plural} {listed}" if before else f"{listed} {noun}")
    return f"at {_join(parts)}" if parts else ""


def _join(texts: list[str]) -> str:
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
