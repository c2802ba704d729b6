"""The password of a storage URL appears nowhere."""

from pathlib import Path
from urllib.parse import unquote

import pytest
from stub_store import claim_trial, new_store

from mtdlab import load_study
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.cli import main
from mtdlab.errors import MtdlabError, StorageError
from mtdlab.store.database import open_to_write
from mtdlab.store.progress import list_studies
from mtdlab.store.urls import mask, sqlite_file, without_password
from mtdlab.sweep.open_study import open_study
from tests.conftest import Written
from tests.postgresql import PASSWORD

SECRET = "s3cr3t/x:y"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (f"postgresql+psycopg://u:{SECRET}@h/db", "postgresql+psycopg://u:***@h/db"),
        (f"postgresql://:{SECRET} 2@h:5432/db", "postgresql://:***@h:5432/db"),
        (
            f"postgresql://h/db?user=u&password={SECRET}&sslmode=allow",
            "postgresql://h/db?user=u&password=***&sslmode=allow",
        ),
        (
            f"postgresql://h/db?PASSWORD={SECRET} 2&SSLPassword=x",
            "postgresql://h/db?PASSWORD=***&SSLPassword=***",
        ),
        (
            f"postgresql://h/db?p%61ssword={SECRET}&passfile=/a/b",
            "postgresql://h/db?p%61ssword=***&passfile=/a/b",
        ),
        ("a?b&password=1.db", "a?b&password=1.db"),
        ("x.db", "x.db"),
    ],
)
def test_a_command_is_recorded_without_the_password(given: str, expected: str) -> None:
    command = Invocation("sweep", (given,), {"storage": (given,), "jobs": ("2",)})
    masked = Invocation("sweep", (expected,), {"storage": (expected,), "jobs": ("2",)})
    assert command.changed(without_password) == masked


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://u:pa@ss/w0rd@h/db",
        "postgresql+psycopg://u:pa@ss/w0rd%40x@h/db",
        "postgresql+psycopg://u:pa@h/db?options=ss/w0rd@x",
        "postgresql+psycopg://u:pa?x=ss/w0rd@h/db",
    ],
)
def test_nothing_is_printed_of_a_url_that_cannot_be_parsed_for_certain(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["mtdlab", "studies", "--storage", url])
    with pytest.raises(SystemExit, match="4"):
        main()
    printed = capsys.readouterr().err
    assert "is a URL with several @" in printed
    assert without_password(url) == "postgresql+psycopg://***"
    for part in ("pa@", "ss/", "w0rd", "h/db"):
        assert part not in printed


def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    assert sqlite_file(f"sqlite:///{tmp_path}/a@b@c.db") == tmp_path / "a@b@c.db"


@pytest.mark.parametrize("key", ["password", "PASSWORD", "p%61ssword", "%50ASSWORD", "sslpassword"])
def test_a_password_in_a_query_is_not_shown(key: str) -> None:
    url = f"postgresql://u@h/db?{key}={SECRET}&user=passfile"
    assert mask(url) == f"postgresql://u@h/db?{unquote(key)}=***&user=passfile"


def test_the_name_of_a_file_of_passwords_is_shown() -> None:
    assert mask("postgresql://u@h/db?passfile=a") == "postgresql://u@h/db?passfile=a"


def test_neither_the_recorded_command_nor_a_message_has_the_password(
    url: str, written: Written
) -> None:
    text = "study: a\nseeds: [0]\n"
    command = Invocation("sweep", ("a",), {"storage": (f"x://u:{SECRET}@h/db",)})
    store = open_study(written(text), url, command)
    assert SECRET not in str(store.study().invocation)
    assert SECRET not in load_study("a", url).command
    claim_trial(store)
    with pytest.raises(MtdlabError, match=r"u:\*\*\*@h/db.*--set study=a-2") as caught:
        open_study(written(text, "trainer.steps=7"), url, command)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://u:{SECRET}@127.0.0.1:1/db",
        "postgresql+psycopg://u:s3cr3t@127.0.0.1:port/db",
        f"postgresql+psycopg://u@127.0.0.1:1/db?PASSWORD={SECRET}",
        f"postgresql+psycopg://u@127.0.0.1:1/db?p%61ssword={SECRET}",
        f"postgresql+psycopg:/u:{SECRET}@h/db",
        f"nosuchdatabase://u:{SECRET}@h/db",
        f"postgresql+nosuchdriver://u:{SECRET}@h/db",
        f"postgresql+psycopg:/u:{SECRET}@h://db",
    ],
)
def test_no_error_names_the_password(url: str) -> None:
    for call in (list_studies, open_to_write):
        with pytest.raises(StorageError, match=r".") as caught:
            call(url)
        assert "s3cr3t" not in str(caught.value)
        assert "\n" not in str(caught.value)


STUDY = """
study: secret
trainer: {corpus: missing.txt, batch_size: 8, steps: 4}
search: {ema_decay: [0.5]}
seeds: [0]
"""


def test_no_command_prints_the_password(
    postgresql_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With a database that works, and one that does not exist."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.yaml").write_text(STUDY)
    assert PASSWORD in postgresql_url
    recorded = Invocation("sweep", ("x",), {"storage": (postgresql_url,)})
    new_store(postgresql_url, name="recorded", invocation=recorded)
    for words in ("sweep secret.yaml", "studies", "report recorded", "show recorded"):
        for url in (postgresql_url, f"{postgresql_url}-missing"):
            monkeypatch.setattr("sys.argv", ["mtdlab", *words.split(), "--storage", url])
            with pytest.raises(SystemExit, match=r"0|2|4|5"):
                main()
    printed = "".join(capsys.readouterr())
    assert '-missing" does not exist' in printed
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in written]
    assert not [text for text in (printed, *texts) if PASSWORD in text]


@pytest.mark.parametrize("scheme", ["postgres", "postgresql+psycopg2", "mysql"])
def test_a_url_of_another_driver_names_that_of_mtdlab(scheme: str) -> None:
    match = r"write .*postgresql\+psycopg://\.\.\., the URL of the driver"
    with pytest.raises(StorageError, match=match) as caught:
        list_studies(f"{scheme}://u:{SECRET}@127.0.0.1:1/db")
    assert SECRET not in str(caught.value)
