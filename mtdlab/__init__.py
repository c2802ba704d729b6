"""mtdlab: how the history in a negative queue shapes a contrastive sentence encoder."""

from importlib import import_module
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
__version__ = "1.0.0rc1"


def __getattr__(name: str) -> Any:
    # pandas, SQLAlchemy and torch only where they are used: the command line answers at once
    if name in __all__:
        from mtdlab.errors import naming_missing

        with naming_missing():
            return getattr(import_module(_HOMES.get(name, "mtdlab.api.run")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names that completion in a notebook offers, also before their first use."""
    return sorted({*globals(), *__all__})
