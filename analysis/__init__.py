"""Analysis of momentum-contrastive studies: arrays and frames in, numbers and figures out.

The functions most used in a notebook can be imported from here. A function's module is imported at
its first use, because SciPy's statistics take time to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtdlab.analysis.inference.decide import decide as decide
    from mtdlab.analysis.inference.verdict import compute_verdict as compute_verdict
    from mtdlab.analysis.measures.geometry import alignment as alignment
    from mtdlab.analysis.measures.geometry import singular_values as singular_values
    from mtdlab.analysis.measures.geometry import uniformity as uniformity
    from mtdlab.analysis.measures.trace import d_trace as d_trace
    from mtdlab.analysis.notebook import read_run_table as read_run_table
    from mtdlab.analysis.statistics.contrasts import compare_studies as compare_studies
    from mtdlab.analysis.statistics.contrasts import compare_trials as compare_trials

_MODULES = {
    "alignment": "mtdlab.analysis.measures.geometry",
    "compare_studies": "mtdlab.analysis.statistics.contrasts",
    "compare_trials": "mtdlab.analysis.statistics.contrasts",
    "compute_verdict": "mtdlab.analysis.inference.verdict",
    "d_trace": "mtdlab.analysis.measures.trace",
    "decide": "mtdlab.analysis.inference.decide",
    "read_run_table": "mtdlab.analysis.notebook",
    "singular_values": "mtdlab.analysis.measures.geometry",
    "uniformity": "mtdlab.analysis.measures.geometry",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
