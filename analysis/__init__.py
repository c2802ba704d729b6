"""Analysis of momentum-contrastive studies: arrays and frames in, numbers and figures out.

The functions most used in a notebook can be imported from here. A function's module is imported at
its first use, because SciPy's statistics take time to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.inference.verdict import compute_verdict
    from analysis.measures.geometry import alignment, singular_values, uniformity
    from analysis.measures.trace import d_trace
    from analysis.notebook import read_run_table
    from analysis.statistics.contrasts import compare_studies, compare_trials

_MODULES = {
    "alignment": "analysis.measures.geometry",
    "compare_studies": "analysis.statistics.contrasts",
    "compare_trials": "analysis.statistics.contrasts",
    "compute_verdict": "analysis.inference.verdict",
    "d_trace": "analysis.measures.trace",
    "read_run_table": "analysis.notebook",
    "singular_values": "analysis.measures.geometry",
    "uniformity": "analysis.measures.geometry",
}

__all__ = [
    "alignment",
    "compare_studies",
    "compare_trials",
    "compute_verdict",
    "d_trace",
    "read_run_table",
    "singular_values",
    "uniformity",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
