"""A place that all machines of a study share: a folder, or a URL that fsspec opens (S3, SFTP).

Folders are copied to it and from it; nothing is opened there in place.
"""

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtdlab.errors import MtdlabError, NothingToReport, StorageError, one_line
from mtdlab.store.recorded import read_recorded
from mtdlab.trial.study import Job

_SCHEME = re.compile(r"([A-Za-z][\w+.-]+):")
_CREDENTIALS = re.compile(r"://[^@]*:[^@]*@|[?&][\w-]*(?:key|secret|token|pass|sig)\w*=", re.I)
"""Of a URL: scheme://user:PASSWORD@host, ?token=TOKEN. A secret of S3 may contain a slash."""
_LONGEST = 300


class ArtifactsError(MtdlabError):
    """The shared place cannot be read or written; the message is one sentence."""


def artifacts_url(given: str) -> str:
    """The URL that --artifacts means; a path becomes the `file:` URL of its absolute path.

    Raises MtdlabError for a URL with a password or a key, which is recorded and printed, and for
    one without a place.
    """
    scheme = _SCHEME.match(given)
    if _CREDENTIALS.search(given):
        raise MtdlabError(
            f"--artifacts: the {scheme[1] if scheme else ''} URL contains a password or a key, but "
            "it is recorded with the study; give them in the environment or in the configuration "
            "of its driver (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for S3)"
        )
    if scheme is None or scheme[1] == "file":
        path = re.sub(r"^file:(//)?", "", given)
        if not path:
            raise MtdlabError("--artifacts: no folder is named; write a path or a URL")
        # without .., so that another way to write it is the same URL
        return f"file://{os.path.abspath(Path(path).expanduser())}"  # noqa: PTH100
    place = given[scheme.end() :]
    if not place.startswith("//") or not place.strip("/"):
        raise MtdlabError(
            f"--artifacts {given}: is not a URL; write {scheme[1]}://PLACE, or ./{given} for a "
            "folder of that name"
        )
    return given.rstrip("/")


@dataclass(frozen=True)
class Artifacts:
    """The shared place at a URL. Names in it are paths below it. All methods raise ArtifactsError.

    A folder that a killed process left half written lacks the file that is written last.
    """

    url: str

    def check(self) -> None:
        """Write a small file, read it, and remove it."""
        name, text = f".mtdlab-{secrets.token_hex(8)}", self.url.encode()
        with self._opened("cannot be used") as (files, root):
            _write(files, f"{root}/{name}", lambda path: files.pipe_file(path, text))
            if files.cat_file(f"{root}/{name}") != text:
                raise OSError("what was written is not what is read")
            files.rm_file(f"{root}/{name}")

    def upload(self, folder: Path, name: str, last: str) -> None:
        """Copy the files of a folder to `name`, the file `last` after all others."""
        with self._opened("cannot be written to") as (files, root):
            for path in sorted(folder.rglob("*"), key=lambda path: path == folder / last):
                if path.is_file():
                    target = f"{root}/{name}/{path.relative_to(folder).as_posix()}"
                    _write(files, target, lambda remote, path=path: files.put_file(path, remote))

    def download(self, name: str, wanted: Iterable[str], folder: Path) -> None:
        """Copy files of `name` into a folder."""
        with self._opened("cannot be read") as (files, root):
            for file in wanted:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                files.get_file(f"{root}/{name}/{file}", folder / file)

    def files(self, name: str) -> list[str]:
        """The paths of all files below `name`, relative to it; none where there is no such name."""
        with self._opened("cannot be read") as (files, root):
            with suppress(FileNotFoundError):
                start = f"{root}/{name}/"
                found = map(str, files.find(start.rstrip("/")))
                return sorted(path.removeprefix(start) for path in found if path.startswith(start))
            return []

    def remove(self, name: str) -> None:
        """Remove a folder; one that is not there is none to remove."""
        with self._opened("cannot be written to") as (files, root), suppress(FileNotFoundError):
            files.rm(f"{root}/{name}", recursive=True)

    @contextmanager
    def _opened(self, problem: str) -> Iterator[tuple[Any, str]]:
        """The driver's file system and the place in it; any error of it becomes a sentence."""
        try:
            # imports the driver of the URL
            from fsspec.core import url_to_fs

            files, root = url_to_fs(self.url)
            # what it has listed: another machine may have written since
            files.invalidate_cache()
            yield files, str(root).rstrip("/")
        except Exception as error:
            lacks_s3 = self.url.startswith("s3:") and isinstance(error, ImportError)
            more = "; install it with pip install 'mtdlab[s3]'" if lacks_s3 else ""
            raise ArtifactsError(
                f"shared place {self.url} {problem} ({one_line(error)[:_LONGEST]}){more}"
            ) from error


def _write(files: Any, path: str, write: Any) -> None:
    """Write a file, after its folder; no bucket is created, whose name may be misspelt."""
    try:
        write(path)
    except FileNotFoundError:
        if not files.exists(path.partition("/")[0] or "/"):
            raise
        files.makedirs(path.rpartition("/")[0], exist_ok=True)
        write(path)


def choose_artifacts(job: Job, given: str | None) -> str | None:
    """The URL that a sweep shares checkpoints and models at: the study's, or the first given one.

    None where neither is. Raises MtdlabError where the given one cannot be meant.
    """
    spec = job.spec
    try:
        recorded = read_recorded(job.url, spec.name).artifacts
    except (NothingToReport, StorageError):
        # missing, or of an earlier version: opening the study reports what is wrong with it
        recorded = None
    if given is None:
        return recorded
    chosen = artifacts_url(given)
    refuse_other_artifacts(spec.name, recorded or chosen, chosen)
    if not spec.keeps_models:
        raise MtdlabError(
            "--artifacts shares the checkpoints and models of mtdlab's own trainer; a program of "
            "--objective keeps its own files: leave --artifacts out"
        )
    if chosen == f"file://{job.models}":
        raise MtdlabError(
            f"--artifacts and --models are the same folder, {job.models}; name another one for "
            "one of them"
        )
    return chosen


def refuse_other_artifacts(study: str, recorded: str, given: str) -> None:
    """Raise MtdlabError where a study shares its checkpoints and models elsewhere."""
    if recorded != given:
        raise MtdlabError(
            f"study {study} keeps checkpoints and models in {recorded}, not in {given}; "
            "leave --artifacts out to resume it"
        )
