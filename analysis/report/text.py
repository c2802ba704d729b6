"""Phrases that several topics of a report share."""

import pandas as pd

from analysis.runs import format_mtd

LEVEL = 0.95
PERCENT = f"{100 * LEVEL:g} %"
BAND = f"The band is the {PERCENT} t interval over seeds."


def count(amount: int, noun: str) -> str:
    """An amount with its noun in the right number."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def describe_curve(curve: pd.DataFrame, what: str, *, decimals: int = 2) -> str:
    """Where a curve over MTD is highest and lowest."""
    top, bottom = curve.iloc[int(curve["mean"].argmax())], curve.iloc[int(curve["mean"].argmin())]
    if len(curve) == 1:
        return f"{what} {top['mean']:.{decimals}f} at the only MTD, {format_mtd(top['mtd'])}."
    return (
        f"{what} highest at MTD {format_mtd(top['mtd'])} ({top['mean']:.{decimals}f}) and "
        f"lowest at MTD {format_mtd(bottom['mtd'])} ({bottom['mean']:.{decimals}f})."
    )
