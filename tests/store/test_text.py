"""Text that a database refuses is replaced where it is written."""

from mtdlab.config import Unit
from mtdlab.store import Result, Store
from mtdlab.store.recorded import read_trial


def test_reasons_and_notes_may_hold_any_character(url: str) -> None:
    """PostgreSQL has no NUL in text; a name of a file that is not UTF-8 has lone surrogates."""
    store = Store(url, study_id=1)
    store.write_study("a", "sts_test", {"sampler": "grid"}, "", "", description="a\0b")
    store.add_units([Unit("x", 0, {"corpus": "a\0b"})])
    owner = {"pid": 1}
    claim = store.claim(owner)
    assert claim is not None
    store.begin(claim, {"corpus": "a\0b"}, {"corpus": "a\0b"}, 2.0)
    reason = "OSError: bad\0file \udcff"
    assert store.finish(claim, owner, Result("FAIL", reason, traceback=f"Traceback\0{reason}"))
    store.add_note(claim, f"note\0{reason}")
    trial = read_trial(url, "a", 0)
    assert trial.reason == "OSError: bad\ufffdfile \\udcff"
    assert trial.traceback == f"Traceback\ufffd{trial.reason}"
    assert trial.note == f"note\ufffd{trial.reason}"
    assert trial.parameters == {"corpus": "a\0b"}
    study = store.study()
    assert study is not None
    assert study.description == "a\ufffdb"
