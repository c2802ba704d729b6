"""Ctrl-C in a terminal reaches the sweep, never its workers."""

import signal
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

from mtdlab.sweep import run as runs


def ctrl_c_is_ignored() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_workers_ignore_ctrl_c_from_their_start() -> None:
    """While they import their modules, they could not handle it."""
    # workers that another test left behind are not started anew
    get_reusable_executor().shutdown(wait=True)
    assert list(runs._trials(ctrl_c_is_ignored, (), jobs=2, count=2)) == [True, True]
    assert not ctrl_c_is_ignored()


def working_folder() -> str:
    return str(Path.cwd())


def test_workers_of_an_earlier_sweep_work_in_this_ones_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """joblib keeps its workers: relative paths would be looked up in the first one's folder."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        found = list(runs._trials(working_folder, (), jobs=2, count=2))
        assert found == [str(tmp_path / name)] * 2
