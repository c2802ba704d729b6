"""A study of two trials, and how one of them ends."""

from pathlib import Path

import pytest

from mtdlab.config import Unit
from mtdlab.store import Claim, Result, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The store of a study with two waiting trials."""
    store = Store(f"sqlite:///{tmp_path / 'two.db'}", study_id=1)
    store.write_study("two", "sts_test", {"sampler": "grid"}, "", "")
    store.add_units([Unit("a", 0, {}), Unit("b", 0, {})])
    return store


def finished(store: Store, score: float) -> Claim:
    """Claim a trial and record that it is complete."""
    owner = {"pid": score}
    claim = store.claim(owner)
    assert claim is not None
    store.begin(claim, claim.row, claim.row, {}, {}, 1.0)
    assert store.finish(claim, owner, Result("COMPLETE", values={"score": score}))
    return claim
