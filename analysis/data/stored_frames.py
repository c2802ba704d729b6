"""A study's frames as Parquet files in one folder, and read back the same.

`study.parquet` holds the trials; its schema's metadata hold everything that is no frame, as JSON.
The other frames, the trials of a baseline, and the evaluation items, `items.parquet` with a row per
trial, are files beside it, with their SHA-256 in the same metadata, so that files of different
studies are not mixed.
Columns of mixed types are written as JSON text. A digest of the metadata and the trials is in the
metadata; a file without one, of an earlier version, is read as well.
"""

import dataclasses
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
from pydantic import Field

from mtdlab.analysis.data.defaults import BeyondRun
from mtdlab.analysis.data.environment import Environment, Whole, read_fields
from mtdlab.analysis.data.frames import Baseline, NuisanceTrials, Plan, RecordedSetting, StudyFrames
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.analysis.data.items import ItemScores

MAIN, ITEMS = "study.parquet", "items.parquet"
BESIDE = {"baseline": Baseline, "tuning": NuisanceTrials}
"""What a study ran beside its search, with trials of its own."""
FRAMES = ("curves", "spectra", "scores", "probes", "history", "looks", "environment", "references")
_KEY = b"mtdlab"
_FORMAT = 2
_FIELDS = (
    *("name", "metric", "planned", "sampler", "study_file", "table"),
    *("methods", "description", "select_by", "model", "beyond_run", "stated_margin"),
    *("origin", "scale"),
)


_CHANGED = "was changed since it was written, or is damaged"
_AGAIN = "make the page again from the database of its study"


class StoredFramesError(ValueError):
    """A file holds no study, or only a part of one."""


def to_parquet(study: StudyFrames, *, generated: str) -> dict[str, bytes]:
    """The files of a study by name, `study.parquet` last; the same study gives the same bytes.

    `generated` is when its page was made, as it is printed there.
    """
    files = {
        f"{name}.parquet": _write(frame, {})
        for name in FRAMES
        if len(frame := getattr(study, name))
    }
    if study.items is not None:
        files[ITEMS] = _write_items(study.items)
    for name in BESIDE:
        if (beside := getattr(study, name)) is not None:
            about = {key: value for key, value in vars(beside).items() if key != "trials"}
            files[f"{name}.parquet"] = _write(beside.trials, about)
    about = {
        "format": _FORMAT,
        "generated": generated,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        # a study of a database is written as before there were origins and scales
        "study": {name: value for name in _FIELDS if (value := getattr(study, name)) != ""},
        "invocation": dataclasses.asdict(study.invocation),
        "environments": [dataclasses.asdict(env) for env in study.environments],
        "settings": [dataclasses.asdict(setting) for setting in study.settings.values()],
        "plans": [dataclasses.asdict(plan) for plan in study.plans],
        # a study without names is written as before there were any
        **({"names": study.names} if study.names else {}),
    }
    return files | {MAIN: _write(study.trials, about, with_digest=True)}


def _write(frame: pd.DataFrame, about: Mapping[str, Any], *, with_digest: bool = False) -> bytes:
    mixed = [str(name) for name in frame if frame[name].dtype == object]
    as_json = partial(json.dumps, default=_plain)
    plain = frame.assign(**{name: frame[name].map(as_json) for name in mixed})
    table, written = pa.Table.from_pandas(plain), {**about, "mixed": mixed}
    if with_digest:
        written["digest"] = _digest(json.loads(as_json(written)), table)
    return _to_bytes(table, written)


def _digest(about: Mapping[str, Any], table: Any) -> str:
    """The SHA-256 of metadata without their digest, and of a table as text."""
    others = {name: value for name, value in about.items() if name != "digest"}
    text = json.dumps(others, sort_keys=True) + str(table.to_pylist())
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _write_items(items: ItemScores) -> bytes:
    values = pa.FixedSizeListArray.from_arrays(items.values.ravel(), items.values.shape[1])
    table = pa.table({"number": items.numbers, "values": values})
    return _to_bytes(table, {"gold": items.gold, "tasks": items.tasks, "digest": items.digest})


def _to_bytes(table: Any, about: Mapping[str, Any]) -> bytes:
    content = json.dumps(about, default=_plain).encode()
    metadata, buffer = {**(table.schema.metadata or {}), _KEY: content}, io.BytesIO()
    schema = table.schema.remove_metadata()
    # a stored schema would repeat the metadata, which are longer than the trials
    with parquet.ParquetWriter(buffer, schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata(metadata)
    return buffer.getvalue()


def _plain(value: Any) -> Any:
    """A value that JSON can hold: NumPy's become Python's numbers and lists, mappings dicts."""
    return dict(value) if isinstance(value, Mapping) else value.tolist()


@dataclass(frozen=True)
class _Specified:
    """What every plan states; its questions are read by themselves."""

    study: str
    metric: str
    margin: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
    alpha: Annotated[float, Field(strict=True, gt=0, lt=1)]
    looks: tuple[Whole, ...]
    beyond_run: BeyondRun


def from_parquet(path: Path) -> tuple[StudyFrames, str]:
    """The study of a file `study.parquet`, or of its folder or page, and when it was made.

    Raises StoredFramesError, with the file and what to do, for one that is missing or damaged, was
    not written by `to_parquet` or was changed, or does not belong to the files beside it.
    """
    of_page = path / "data" / MAIN
    main = of_page if of_page.exists() else path / MAIN if path.is_dir() else path
    try:
        return _read_study(main)
    except StoredFramesError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoredFramesError(f"{main}: {_CHANGED} ({error!s:.200}); {_AGAIN}") from None


def read_stored_trials(main: Path) -> tuple[pd.DataFrame, list[str]]:
    """The trials of a file `study.parquet` and the names of their settings, whatever is beside it.

    Raises StoredFramesError for a file that cannot be read, LookupError and TypeError for one that
    `to_parquet` did not write.
    """
    table, about = _read_table(main, main)
    return _to_frame(table, about), [setting["name"] for setting in about["settings"]]


def _read_study(main: Path) -> tuple[StudyFrames, str]:
    """The study of a main file. Raises what metadata of another shape raise."""
    table, about = _read_table(main, main)
    if (written := about.get("format", "none")) != _FORMAT:
        raise StoredFramesError(
            f"{main}: has format {written}, this version of mtdlab reads {_FORMAT}, which `mtdlab "
            f"report` writes into data/{MAIN} beside a page; {_AGAIN}, or give a table of runs "
            "with --table"
        )
    if about.get("digest", "") not in ("", _digest(about, table)):
        raise ValueError("its digest is another one")
    frames: dict[str, Any] = {}
    for name, digest in about["files"].items():
        beside = main.parent / name
        if name == ITEMS:
            if not beside.exists():
                raise _missing(beside, main)
            frames["load_items"] = partial(_read_items, beside, main, digest)
            continue
        beside_table, own = _read_table(beside, main, digest)
        frames[beside.stem] = _to_frame(beside_table, own)
        if kind := BESIDE.get(beside.stem):
            del own["mixed"]
            lists = {key: tuple(value) for key, value in own.items() if isinstance(value, list)}
            frames[beside.stem] = kind(**own | lists, trials=frames[beside.stem])
    plans = tuple(read_fields(Plan, plan) for plan in about["plans"])
    for plan in plans:
        read_fields(_Specified, plan.values)
        _ = plan.questions
    kinds, settings = get_type_hints(StudyFrames), about["settings"]
    study = StudyFrames(
        trials=_to_frame(table, about),
        invocation=read_fields(Invocation, about["invocation"]),
        environments=tuple(read_fields(Environment, env) for env in about["environments"]),
        settings={each["name"]: read_fields(RecordedSetting, each) for each in settings},
        plans=plans,
        names=read_fields(kinds["names"], about.get("names", {})),
        **{name: read_fields(kinds[name], value) for name, value in about["study"].items()},
        **frames,
    )
    return study, read_fields(str, about["generated"])


def _to_frame(table: Any, about: Mapping[str, Any]) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    for name in about.get("mixed", ()):
        frame[name] = frame[name].map(json.loads).astype(object)
    return frame


def _read_items(path: Path, main: Path, digest: str) -> ItemScores:
    table, about = _read_table(path, main, digest)
    numbers = table["number"].to_numpy()
    values = table["values"].combine_chunks().flatten().to_numpy().reshape(len(numbers), -1)
    gold = None if about["gold"] is None else np.array(about["gold"], dtype=np.float64)
    return ItemScores(numbers, values, gold, about["tasks"], about["digest"])


def _missing(path: Path, main: Path) -> StoredFramesError:
    needed = "" if path == main else f", which {main.name} needs; copy the whole folder"
    return StoredFramesError(f"{path}: no such file{needed}")


def _read_table(path: Path, main: Path, digest: str = "") -> tuple[Any, dict[str, Any]]:
    try:
        content = path.read_bytes()
        table = parquet.read_table(io.BytesIO(content))
    except FileNotFoundError:
        raise _missing(path, main) from None
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise StoredFramesError(f"{path}: not a Parquet file that can be read: {reason}") from None
    if digest and hashlib.sha256(content).hexdigest() != digest:
        raise StoredFramesError(
            f"{path}: not the file that {main.name} was written with; write the report again"
        )
    return table, json.loads((table.schema.metadata or {}).get(_KEY, b"{}"))
