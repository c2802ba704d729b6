"""mtdlab: how the history in a negative queue shapes a contrastive sentence encoder."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtdlab.store import load_study

__all__ = ["load_study"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # pandas and SQLAlchemy only where they are used: the command line answers at once
    if name == "load_study":
        from mtdlab.store import load_study

        return load_study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
