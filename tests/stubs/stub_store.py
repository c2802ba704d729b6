"""Studies and trials that are written to a store directly, without a study file."""

from typing import Any

from mtdlab.analysis.data.invocation import NO_INVOCATION
from mtdlab.config.study import PlannedTrial
from mtdlab.store.claims import Claim, Result
from mtdlab.store.owner import Owner, this_process
from mtdlab.store.store import Store
from mtdlab.store.tables import StudyRow


def study_row(name: str = "a", **columns: Any) -> StudyRow:
    """The record of a grid that is ranked by sts_test, with other columns as given."""
    plain = {"metric": "sts_test", "identity": {"sampler": "grid"}, "file_text": ""}
    return StudyRow(name=name, **plain | {"invocation": NO_INVOCATION} | columns)


def new_store(
    url: str, *planned: PlannedTrial, study_id: int = 1, name: str = "a", **columns: Any
) -> Store:
    """The store of a new study, as `study_row`, with its planned trials."""
    store = Store(url, study_id)
    store.write_study(study_row(name, **columns))
    assert store.add_trials(planned) == {}
    return store


def claim_trial(store: Store, owner: Owner | None = None) -> Claim:
    """Claim the next trial, for this process if no owner is given."""
    claim = store.claim(this_process() if owner is None else owner)
    assert claim is not None
    return claim


def begin_trial(
    store: Store,
    owner: Owner | None = None,
    settings: dict[str, Any] | None = None,
    mtd: float = 2.0,
    **options: Any,
) -> Claim:
    """Claim (`claim_trial`) and begin the next trial."""
    claim = claim_trial(store, owner)
    assert store.begin(claim, claim.parameters or {}, settings or {}, mtd, **options)
    return claim


def end_trial(store: Store, result: Result, **begun: Any) -> Claim:
    """Claim, begin (`begin_trial`) and finish the next trial."""
    claim = begin_trial(store, **begun)
    assert store.finish(claim, result)
    return claim
