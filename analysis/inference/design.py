"""What the design of a study confounds with MTD. C is the number of its configurations."""

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from analysis.measures import Floats
from analysis.measures.trace import trace_limit

MAX_CORRELATION = 0.95
"""A larger correlation of log MTD with the log of a component counts as confounding."""

MAX_CONSTANT_SHARE = 1 / 3
"""A component that is constant over this share of the configurations, those with the highest or
lowest MTD, counts as confounded."""

_MIN_CONFIGURATIONS = 3


def describe_confounding(ema_decay: ArrayLike, ratio: ArrayLike) -> str:
    """Which components a design of C configurations confounds with MTD, as text; empty if none.

    Each configuration has an eta and a K/N, (C,) each. A design confounds MTD with a component if
    only that component varies, if the logarithms of both have a correlation above 0.95, or if the
    component is constant over the third of configurations with the highest (or the lowest) MTD.
    Configurations without a queue are left out; a design with one MTD gives an empty text.
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
    confounded = _correlated(varied, trace + queue) or _constant_end(varied, trace + queue)
    return f"The design confounds MTD with {confounded}." if confounded else ""


def _correlated(varied: dict[str, Floats], mtd: Floats) -> str:
    """The component with the highest correlation with MTD, if above `MAX_CORRELATION`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = {
            name: abs(float(np.corrcoef(np.log(mtd), np.log(values))[0, 1]))
            for name, values in varied.items()
        }
    name = max(sizes, key=lambda component: sizes[component])
    text = f"{name}: the correlation of their logarithms is {sizes[name]:.2f}"
    return text if sizes[name] > MAX_CORRELATION else ""


def _constant_end(varied: dict[str, Floats], mtd: Floats) -> str:
    """The component that is constant over the highest or lowest MTDs, as text; else empty."""
    order = np.argsort(mtd, kind="stable")
    least = max(_MIN_CONFIGURATIONS, int(np.ceil(MAX_CONSTANT_SHARE * len(mtd))))
    for end, (name, values) in product((order[-least:], order[:least]), varied.items()):
        if np.ptp(values[end]) == 0:
            low, high = mtd[end].min(), mtd[end].max()
            value = 1 - 1 / values[end][0] if name == "η" else values[end][0]
            return f"{name}: all configurations of MTD {low:.4g} to {high:.4g} have {value:.4g}"
    return ""
