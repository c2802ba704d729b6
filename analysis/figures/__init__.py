"""Figures: each function draws on the given axes what another module computed.

Only the object-oriented interface of matplotlib is used; there is no global figure. Seaborn draws
only the grids: its other functions estimate what they draw, by resampling, and these are t
intervals over seeds, computed elsewhere. The modules are imported when a function is first used:
matplotlib takes half a second, and what describes a study needs none of it.

Tables, of means above all, have text and trial too where they state something, as `add_spots` takes
them.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtdlab.analysis.figures.distance import *  # noqa: F403
    from mtdlab.analysis.figures.experiments import *  # noqa: F403
    from mtdlab.analysis.figures.files import *  # noqa: F403
    from mtdlab.analysis.figures.representation import *  # noqa: F403
    from mtdlab.analysis.figures.spots import *  # noqa: F403
    from mtdlab.analysis.figures.steps import *  # noqa: F403
    from mtdlab.analysis.figures.style import *  # noqa: F403

_MODULES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def __getattr__(name: str) -> Any:
    # a module of the package is imported by its name, not sought in the others
    if not name.startswith("_") and name not in _MODULES:
        for module in (import_module(f"{__name__}.{submodule}") for submodule in _MODULES):
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
