"""Simulated tables that are kept between processes."""

from pathlib import Path

import numpy as np
import pytest

from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.inference.kept import keep
from mtdlab.analysis.inference.simultaneous import Families, Null, null_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MTDLAB_CACHE", str(tmp_path))
    return tmp_path / "simulated"


def critical_and_p() -> tuple[float, float]:
    """Of a design of three seeds and levels, all its objects new."""
    tests = Families(null_of(Blocks(np.ones((3, 3), dtype=bool))), [np.array([[-1.0, 0, 1]])])
    return tests.critical(0.05), float(tests.p_value(np.array(1.5)))


@pytest.mark.usefixtures("folder")
def test_a_kept_table_is_read_and_not_simulated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = critical_and_p()
    monkeypatch.setattr(Null, "fits", property(lambda _: pytest.fail("simulated again")))
    assert np.array_equal(critical_and_p(), first)  # bit for bit


def test_a_damaged_file_is_simulated_again(folder: Path) -> None:
    first = critical_and_p()
    for path in folder.iterdir():
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    assert np.array_equal(critical_and_p(), first)
    next(folder.iterdir()).write_bytes(b"")
    assert np.array_equal(critical_and_p(), first)


def test_another_definition_is_another_table(folder: Path) -> None:
    for definition in ((np.ones(2), 0.05), (np.ones((1, 2)), 0.05), (np.ones(2), 0.01)):
        place = float(len(list(folder.iterdir()))) if folder.is_dir() else 0.0
        assert keep("table", definition, lambda value=place: np.array([[value]]))[0, 0] == place
    assert len(list(folder.iterdir())) == 3


def test_a_folder_that_cannot_be_written_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MTDLAB_CACHE", str(tmp_path / "file"))
    assert keep("table", (1,), lambda: np.array([[7.0]])).tolist() == [[7.0]]
