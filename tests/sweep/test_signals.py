"""Ctrl-C in a terminal reaches the sweep, never its workers."""

import signal

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
