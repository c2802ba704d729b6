"""mtdlab: how the history in a negative queue shapes a contrastive sentence encoder."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtdlab.store import load_study

__all__ = ["load_study"]
__version__ = "0.1.0"


def _check_analysis() -> None:
    """Raise ImportError where another `analysis` hides the package of that name beside this one."""
    ours = Path(__file__).parents[1] / "analysis" / "__init__.py"
    spec = find_spec("analysis")
    if spec is None or not ours.exists():
        return  # the import itself names what is missing
    # a folder without __init__.py has no origin; it hides a package that is installed editable
    found = spec.origin or next(iter(spec.submodule_search_locations or ()), str(ours))
    if Path(found).resolve() != ours.resolve():
        raise ImportError(
            f"{found} hides mtdlab's own package `analysis`; rename it, or start Python in "
            "another folder"
        )


_check_analysis()


def __getattr__(name: str) -> Any:
    # pandas and SQLAlchemy only where they are used: the command line answers at once
    if name == "load_study":
        from mtdlab.store import load_study

        return load_study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
