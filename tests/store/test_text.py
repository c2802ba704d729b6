"""Text that a database refuses is replaced where it is written."""

from stub_store import end_trial, new_store

from mtdlab.config.study import PlannedTrial
from mtdlab.store.claims import Result
from mtdlab.store.recorded import read_trial


def test_reasons_and_notes_may_hold_any_character(url: str) -> None:
    """PostgreSQL has no NUL in text; a name of a file that is not UTF-8 has lone surrogates."""
    store = new_store(url, PlannedTrial("x", 0, {"corpus": "a\0b"}), description="a\0b")
    reason = "OSError: bad\0file \udcff"
    result = Result("FAIL", reason, traceback=f"Traceback\0{reason}")
    claim = end_trial(store, result, settings={"corpus": "a\0b"})
    store.add_note(claim, f"note\0{reason}")
    trial = read_trial(url, "a", 0).row
    assert trial.reason == "OSError: bad\ufffdfile \\udcff"
    assert trial.traceback == f"Traceback\ufffd{trial.reason}"
    assert trial.note == f"note\ufffd{trial.reason}"
    assert trial.parameters == {"corpus": "a\0b"}
    assert store.study().description == "a\ufffdb"
