"""Whether a design can separate MTD from its components 1/(1 - eta) and K/N."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.trace import trace_limit

Floats = NDArray[np.float64]

MOST_CORRELATION = 0.95
"""Above this correlation of log MTD and the log of a component, a design confounds the two."""

MOST_SHARE = 1 / 3
"""A range of MTD at an end with one component constant may hold less than this share."""

_FEWEST = 3


def describe_confounding(ema_decay: ArrayLike, ratio: ArrayLike) -> str:
    """What a design of C configurations confounds, as a sentence; empty if nothing.

    ema_decay  eta, (C,); ratio  K/N, (C,).

    A design confounds MTD with a component if it varies alone, if the logarithms of both correlate
    by more than 0.95, or if all of the third of configurations with the highest (or the lowest) MTD
    have one value of it. Configurations without a queue, and designs of one MTD, are not judged.
    """
    trace = np.asarray(trace_limit(np.asarray(ema_decay, dtype=np.float64)))
    queue = np.asarray(ratio, dtype=np.float64)
    trace, queue = trace[queue > 0], queue[queue > 0]
    if len(np.unique(np.round(trace + queue, 3))) < 2:
        return ""
    varied = {name: values for name, values in (("η", trace), ("K/N", queue)) if np.ptp(values)}
    if len(varied) == 1:
        name = next(iter(varied))
        return f"Only {name} varies, so its effect and that of MTD cannot be separated."
    found = _correlated(varied, trace + queue) or _constant_end(varied, trace + queue)
    return f"The design confounds MTD with {found}." if found else ""


def _correlated(varied: dict[str, Floats], mtd: Floats) -> str:
    """The component that goes with MTD most closely, if it does so too closely."""
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = {
            name: abs(float(np.corrcoef(np.log(mtd), np.log(values))[0, 1]))
            for name, values in varied.items()
        }
    name = max(sizes, key=lambda each: sizes[each])
    if sizes[name] <= MOST_CORRELATION:
        return ""
    return f"{name}: the correlation of their logarithms is {sizes[name]:.2f}"


def _constant_end(varied: dict[str, Floats], mtd: Floats) -> str:
    """A component with one value at all of the highest or lowest MTDs, if there is one."""
    order = np.argsort(mtd, kind="stable")
    least = max(_FEWEST, int(np.ceil(MOST_SHARE * len(mtd))))
    for end in (order[-least:], order[:least]):
        for name, values in varied.items():
            if np.ptp(values[end]) == 0:
                low, high = mtd[end].min(), mtd[end].max()
                value = 1 - 1 / values[end][0] if name == "η" else values[end][0]
                return f"{name}: all configurations of MTD {low:.4g} to {high:.4g} have {value:.4g}"
    return ""
