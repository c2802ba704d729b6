"""mtdlab: how the history in a negative queue shapes a contrastive sentence encoder."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtdlab.api.plan import plan
    from mtdlab.api.report import load_study, report
    from mtdlab.api.run import run_study, train
    from mtdlab.encoders.saved import load_encoder
    from mtdlab.evaluation.evaluate import evaluate

__all__ = ["evaluate", "load_encoder", "load_study", "plan", "report", "run_study", "train"]
_HOMES = {
    "evaluate": "mtdlab.evaluation.evaluate",
    "load_encoder": "mtdlab.encoders.saved",
    "load_study": "mtdlab.api.report",
    "plan": "mtdlab.api.plan",
    "report": "mtdlab.api.report",
}
__version__ = "0.1.0"


def _check_analysis() -> None:
    """Raise ImportError where another `analysis` hides the package of that name beside this one."""
    ours = Path(__file__).parents[1] / "analysis" / "__init__.py"
    spec = find_spec("analysis")
    if spec is None or not ours.exists():
        return  # the import itself names what is missing
    # a folder without __init__.py has no origin; it hides a package that is installed editable
    other = spec.origin or next(iter(spec.submodule_search_locations or ()), str(ours))
    if Path(other).resolve() != ours.resolve():
        raise ImportError(
            f"{other} hides mtdlab's own package `analysis`; rename it, or start Python in "
            "another folder"
        )


_check_analysis()


def __getattr__(name: str) -> Any:
    # pandas, SQLAlchemy and torch only where they are used: the command line answers at once
    if name in __all__:
        module = import_module(_HOMES.get(name, "mtdlab.api.run"))
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names that completion in a notebook offers, also before their first use."""
    return sorted({*globals(), *__all__})
