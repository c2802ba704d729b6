"""A Hugging Face dataset's column as a corpus: `dataset:NAME[:CONFIG[:SPLIT]][#COLUMN]`.

NAME is the hub's, or a folder: one that `save_to_disk` wrote, or one with parquet, JSON or CSV
files. SPLIT is `train` and COLUMN is `text` where they are not given; a row is a sentence.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtdlab.corpus.lines import Tally
from mtdlab.encoders import hub
from mtdlab.errors import MtdlabError

if TYPE_CHECKING:
    from datasets import Dataset

PREFIX = "dataset:"
ROWS = 1024
"""Rows in memory at once; a fixed number, since the fingerprint is taken batch by batch."""


@dataclass(frozen=True)
class Source:
    """The parts of a corpus' name."""

    name: str
    config: str | None
    split: str
    column: str

    @classmethod
    def of(cls, corpus: str) -> "Source":
        """Read a name. Raises MtdlabError where it is spelled otherwise."""
        where, _, column = corpus.removeprefix(PREFIX).partition("#")
        parts = where.split(":")
        if not parts[0] or len(parts) > 3:
            raise MtdlabError(
                f"corpus {corpus}: not the name of a dataset's column; "
                f"it is spelled {PREFIX}NAME:CONFIG:SPLIT#COLUMN, where only NAME must be given"
            )
        name, config, split = [*parts, "", ""][:3]
        return cls(name, config or None, split or "train", column or "text")


def fingerprint(corpus: str) -> str:
    """Of the column's values, not of the library's own fingerprint: any change of them counts."""
    digest = hashlib.sha256()
    for values in _batches(corpus, Tally()):
        digest.update(json.dumps(values).encode())
    return digest.hexdigest()[:16]


def sentences(corpus: str, tally: Tally) -> Iterator[str]:
    """The column's sentences, in order; a missing value counts as a blank line.

    Raises MtdlabError where library, dataset, split or column are missing.
    """
    for values in _batches(corpus, tally):
        yield from filter(None, (tally.sentence(value or "") for value in values))


def _batches(corpus: str, tally: Tally) -> Iterator[list[str | None]]:
    source = Source.of(corpus)
    try:
        data = _load(source)
    except MtdlabError:
        raise
    except Exception as error:
        # its builders and file readers raise many kinds, among them pyarrow's and pandas'
        lines = str(error).splitlines() or [type(error).__name__]
        raise MtdlabError(f"corpus {corpus}: cannot be loaded: {lines[0]}") from None
    texts = [name for name, kind in data.features.items() if "string" in getattr(kind, "dtype", "")]
    if source.column not in texts:
        raise MtdlabError(
            f"corpus {corpus}: no column {source.column} of text; there is "
            f"{', '.join(texts) or 'none'}: give it as #COLUMN"
        )
    tally.total = len(data)
    for batch in data.select_columns([source.column]).iter(ROWS):
        yield batch[source.column]
        tally.done += len(batch[source.column])


def _load(source: Source) -> "Dataset":
    try:
        import datasets
    except ModuleNotFoundError:
        raise MtdlabError(
            f"corpus {PREFIX}{source.name}: needs the library datasets; install the extra: "
            "pip install 'mtdlab[datasets]'"
        ) from None
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    folder = Path(source.name)
    if any((folder / name).is_file() for name in ("state.json", "dataset_dict.json")):
        saved = datasets.load_from_disk(folder)
        return saved if isinstance(saved, datasets.Dataset) else saved[source.split]
    if not folder.is_dir():
        _require_reachable(source.name)
    try:
        return datasets.load_dataset(source.name, source.config, split=source.split)
    except ConnectionError:
        raise MtdlabError(
            f"corpus {PREFIX}{source.name}: neither a folder here nor in the local cache; "
            "give a folder, or run once online with HF_HUB_OFFLINE unset to fetch it"
        ) from None


def _require_reachable(name: str) -> None:
    from huggingface_hub import HfApi, is_offline_mode
    from huggingface_hub.errors import HfHubHTTPError

    if is_offline_mode():
        return
    try:
        HfApi().dataset_info(name, timeout=hub.SECONDS)
    except HfHubHTTPError:
        raise MtdlabError(
            f"corpus {PREFIX}{name}: neither a folder here nor a public dataset of the hub; "
            "check its spelling, or log in with hf auth login"
        ) from None
    except Exception:
        # of whichever HTTP library the hub's client is built on
        raise MtdlabError(
            f"corpus {PREFIX}{name}: the hub cannot be reached; give a folder, or set "
            "HF_HUB_OFFLINE=1 to take it from the local cache"
        ) from None
