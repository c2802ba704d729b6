"""The place that machines share: its URL, and copies to it and from it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from mtdlab.errors import MtdlabError
from mtdlab.trial.artifacts import Artifacts, ArtifactsError, artifacts_url


@pytest.mark.parametrize("given", ["runs", "./other/../runs", "file:runs", "file://runs"])
def test_a_path_is_the_url_of_its_absolute_path(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert artifacts_url(given) == f"file://{tmp_path / 'runs'}"
    assert artifacts_url(f"file://{tmp_path}/runs/") == f"file://{tmp_path / 'runs'}"


@pytest.mark.parametrize("given", ["s3://bucket/runs", "memory://runs", "sftp://me@host:22/runs"])
def test_a_url_stays_as_it_is_but_for_a_slash_at_its_end(given: str) -> None:
    assert artifacts_url(given) == given
    assert artifacts_url(f"{given}/") == given


@pytest.mark.parametrize(
    "given",
    [
        "s3://AKIA:sec/ret@bucket/runs",
        "sftp://me:secret@host/runs",
        "simplecache::s3://AKIA:secret@bucket",
        "https://host/runs?sig=secret",
        "abfs://runs?account_key=secret",
    ],
)
def test_a_password_or_key_in_the_url_is_refused_and_not_printed(given: str) -> None:
    with pytest.raises(MtdlabError, match="contains a password or a key, but it is") as refused:
        artifacts_url(given)
    assert "sec" not in str(refused.value).replace("AWS_SECRET", "").lower()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("memory:runs", r"memory:runs: is not a URL; write memory://PLACE, or \./memory:runs"),
        ("s3://", r"s3://: is not a URL; write s3://PLACE"),
        ("", "no folder is named"),
        ("file://", "no folder is named"),
    ],
)
def test_what_names_no_place_is_refused(given: str, sentence: str) -> None:
    with pytest.raises(MtdlabError, match=sentence):
        artifacts_url(given)


def a_folder(path: Path) -> Path:
    (path / "sub").mkdir(parents=True)
    (path / "a.json").write_text("a")
    (path / "sub" / "b.bin").write_bytes(bytes(range(256)))
    (path / "empty").write_bytes(b"")
    return path


def test_a_folder_is_copied_there_and_back(shared_url: str, tmp_path: Path) -> None:
    artifacts = Artifacts(shared_url)
    artifacts.check()
    assert artifacts.files("study/one") == []
    folder = a_folder(tmp_path / "local")
    artifacts.upload(folder, "study/one", last="a.json")
    artifacts.upload(folder, "study/one-two", last="a.json")
    # another machine has opened the place before
    assert artifacts.files("study/one") == ["a.json", "empty", "sub/b.bin"]
    assert artifacts.files("study") == [
        f"{name}/{file}" for name in ("one-two", "one") for file in ("a.json", "empty", "sub/b.bin")
    ]
    (tmp_path / "back" / "sub").mkdir(parents=True)
    artifacts.download("study/one", artifacts.files("study/one"), tmp_path / "back")
    for file in ("a.json", "sub/b.bin", "empty"):
        assert (tmp_path / "back" / file).read_bytes() == (folder / file).read_bytes()
    artifacts.remove("study/one")
    artifacts.remove("study/one")
    assert artifacts.files("study/one") == []
    assert len(artifacts.files("study/one-two")) == 3
    # what was written to check the place is removed
    assert all(file.startswith("study/") for file in artifacts.files(""))


def test_what_another_machine_writes_meanwhile_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the driver keeps what it has listed, as those of object stores may."""
    listed: dict[str, Any] = {}
    find = MemoryFileSystem.find

    def find_once(self: MemoryFileSystem, path: str, *given: Any, **options: Any) -> Any:
        return listed.setdefault(f"{path} {options}", find(self, path, *given, **options))

    monkeypatch.setattr(MemoryFileSystem, "find", find_once)
    monkeypatch.setattr(MemoryFileSystem, "invalidate_cache", lambda *_: listed.clear())
    artifacts, elsewhere = Artifacts("memory://seen"), MemoryFileSystem()
    assert artifacts.files("one") == []
    elsewhere.pipe_file("/seen/one/a", b"a")
    assert artifacts.files("one") == ["a"]


def test_the_last_file_is_written_after_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = fsspec.get_filesystem_class("file")
    written: list[str] = []
    put = kind.put_file

    def watched(self: object, source: Path, target: str) -> None:
        put(self, source, target)
        written.append(Path(target).name)

    monkeypatch.setattr(kind, "put_file", watched)
    folder = a_folder(tmp_path / "local")
    Artifacts(f"file://{tmp_path / 'shared'}").upload(folder, "one", last="a.json")
    assert sorted(written) == ["a.json", "b.bin", "empty"]
    assert written[-1] == "a.json"


@pytest.mark.slow
def test_a_bucket_that_is_missing_is_not_created(s3_url: str) -> None:
    with pytest.raises(ArtifactsError, match="shared place s3://misspelt/runs cannot be used"):
        Artifacts("s3://misspelt/runs").check()
    assert "misspelt" not in fsspec.filesystem("s3").ls("", refresh=True)
    Artifacts(s3_url).check()


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_one_sentence(
    s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with pytest.raises(ArtifactsError, match=r"s3://.* cannot be used \(\w+: .*127\.0\.0\.1:9"):
        Artifacts(s3_url).check()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nothing://place", r"nothing://place cannot be used \(ValueError: Protocol not known"),
        ("s3://place", r"cannot be used \(ImportError: .*s3.*\); install it with pip install"),
        ("file:///dev/null/runs", r"cannot be used \(NotADirectoryError"),
    ],
)
def test_a_place_without_driver_or_folder_is_one_sentence(
    url: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    # where another test has imported the driver; `fsspec.registry` is a mapping by its name
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(ArtifactsError, match=sentence):
        Artifacts(url).check()


@pytest.mark.parametrize(
    ("names", "act"),
    [
        (["put_file"], lambda place, folder: place.upload(folder, "one", last="a.json")),
        (["find"], lambda place, _folder: place.files("one")),
        (["get_file"], lambda place, folder: place.download("one", ["a.json"], folder)),
        (["rm"], lambda place, _folder: place.remove("one")),
        (["pipe_file"], lambda place, _folder: place.check()),
    ],
)
def test_an_error_of_any_type_is_one_sentence(
    names: list[str],
    act: Callable[[Artifacts, Path], object],
    tmp_path: Path,
    fail: Callable[..., None],
) -> None:
    fail(RuntimeError("the line\nis cut"), *names)
    place = Artifacts(f"file://{tmp_path / 'shared'}")
    with pytest.raises(ArtifactsError, match=r"shared place file://.* \(RuntimeError: the line is"):
        act(place, a_folder(tmp_path / "local"))
