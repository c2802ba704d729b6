"""What the processes of a study must share: texts, encoders, versions. The first one records it."""

from collections.abc import Mapping

from mtdlab.errors import MtdlabError
from mtdlab.store import Store
from mtdlab.sweep.machine import different_versions

VERSIONS = "versions"
"""The one entry that may differ, at the price of equal bits."""


def check_same_inputs(study: str, store: Store, found: Mapping[str, str]) -> str:
    """Record the inputs that this process has found, unless another process has before it.

    found  `Objective.check` of this process: digests by what they are of, and its versions.

    Returns a sentence where versions differ, else an empty string. Raises MtdlabError where a text
    or an encoder differs, since trials of one study would not be comparable.
    """
    recorded = store.record_inputs(found)
    differ = [name for name, digest in found.items() if recorded[name] != digest]
    others = [name for name in differ if name != VERSIONS]
    if others:
        listed = "; ".join(
            f"{name}: SHA-256 {recorded[name][:12]} there, {found[name][:12]} here"
            for name in others
        )
        raise MtdlabError(
            f"study {study}: not the inputs that its first sweep found ({listed}); use the same "
            "files on every machine, or run this file as another study with --set study=NAME"
        )
    if not differ:
        return ""
    before, here = different_versions(recorded[VERSIONS], found[VERSIONS])
    return (
        f"study {study} began with {before or 'fewer packages'}; here {here or 'fewer packages'}: "
        "its numbers may differ in the last bits"
    )
