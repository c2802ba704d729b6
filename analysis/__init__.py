"""Analysis of momentum-contrastive studies: arrays and frames in, numbers and figures out.

The functions most used in a notebook can be imported from here. A function's module is imported at
its first use, because SciPy's statistics take time to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtdlab.analysis.inference.decide import decide as decide
    from mtdlab.analysis.measures.geometry import alignment as alignment
    from mtdlab.analysis.measures.geometry import singular_values as singular_values
    from mtdlab.analysis.measures.geometry import uniformity as uniformity
    from mtdlab.analysis.measures.trace import d_trace as d_trace
    from mtdlab.analysis.notebook import read_run_table as read_run_table
    from mtdlab.analysis.questions.shape import compute_verdict as compute_verdict
    from mtdlab.analysis.statistics.contrasts import compare_studies as compare_studies
    from mtdlab.analysis.statistics.contrasts import compare_trials as compare_trials

_NAMES = {
    "inference.decide": ("decide",),
    "measures.geometry": ("alignment", "singular_values", "uniformity"),
    "measures.trace": ("d_trace",),
    "notebook": ("read_run_table",),
    "questions.shape": ("compute_verdict",),
    "statistics.contrasts": ("compare_studies", "compare_trials"),
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"mtdlab.analysis.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
