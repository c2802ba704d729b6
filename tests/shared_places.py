"""Places that several machines share: a folder, the memory of this process, a bucket of S3.

The S3 server is moto's, on a free port of the loopback interface. Without s3fs and moto
(`pip install 'mtdlab[test]'`) its tests are skipped.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

_numbers = itertools.count()


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The URL of an S3 server that runs in a thread of this process."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_url(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket; its driver is configured by the environment, as a user's is."""
    for name, value in (
        ("AWS_ENDPOINT_URL", s3_endpoint),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "key"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_CONFIG_FILE", "/nowhere"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/nowhere"),
    ):
        monkeypatch.setenv(name, value)
    kind = fsspec.get_filesystem_class("s3")
    # one that was opened in another environment
    kind.clear_instance_cache()
    bucket = f"bucket-{next(_numbers)}"
    kind().mkdir(bucket)
    return f"s3://{bucket}/runs"


@pytest.fixture(params=["file", "memory", pytest.param("s3", marks=pytest.mark.slow)])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty shared place, of each kind."""
    if request.param == "s3":
        return str(request.getfixturevalue("s3_url"))
    if request.param == "memory":
        return f"memory://place-{next(_numbers)}"
    return f"file://{tmp_path / 'shared'}"


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes operations of local shared folders raise an error, as a server that is away does."""

    def failing(error: Exception, *names: str) -> None:
        def raised(*_arguments: object, **_options: object) -> None:
            raise error

        for name in names:
            monkeypatch.setattr(f"fsspec.implementations.local.LocalFileSystem.{name}", raised)

    return failing
