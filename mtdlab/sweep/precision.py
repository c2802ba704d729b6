"""One precision per study: what `precision: auto` means in all of its trials."""

from mtdlab.config import StudySpec
from mtdlab.config.search import Choices
from mtdlab.device import choose_device
from mtdlab.store import Store


def fix_precision(spec: StudySpec, store: Store) -> str:
    """Record the precision of the study's `auto`, unless an earlier sweep has recorded it.

    Returns a sentence where the recorded one is not what `auto` would choose on this machine,
    else an empty string.
    """
    if not _uses_auto(spec):
        return ""
    device = choose_device(spec.fixed().model_copy(update={"precision": "auto"}))
    here = str(device.dtype).removeprefix("torch.")
    recorded = store.record_precision(here)
    if recorded == here:
        return ""
    return (
        f"study {spec.name}: precision {recorded}, as in its earlier trials; "
        f"auto would choose {here} on this machine"
    )


def _uses_auto(spec: StudySpec) -> bool:
    searched = spec.search.get("precision")
    if isinstance(searched, Choices):
        return "auto" in searched.values
    return spec.fixed().precision == "auto"
