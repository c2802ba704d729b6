"""Analysis of momentum-contrastive studies: arrays and frames in, numbers and figures out.

The functions most used in a notebook can be imported from here. A function's module is imported at
its first use, because SciPy's statistics take time to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.contrasts import compare_studies, compare_trials
    from analysis.geometry import alignment, singular_values, uniformity
    from analysis.run_tables import read_run_table
    from analysis.trace import d_trace
    from analysis.verdict import compute_verdict

_MODULES = {
    "alignment": "analysis.geometry",
    "compare_studies": "analysis.contrasts",
    "compare_trials": "analysis.contrasts",
    "compute_verdict": "analysis.verdict",
    "d_trace": "analysis.trace",
    "read_run_table": "analysis.run_tables",
    "singular_values": "analysis.geometry",
    "uniformity": "analysis.geometry",
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
