"""Claims of two workers in every order: no trial is lost, and none is done twice.

A machine of states compares the database with a model of it in memory. A worker may die with its
trial, or be suspended, presumed dead and return.
"""

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import delete
from stub_store import study_row

from mtdlab.config.study import PlannedTrial
from mtdlab.store.claims import MOST_DEATHS, Claim, Result
from mtdlab.store.store import Store
from mtdlab.store.tables import StudyRow

PLANNED = [PlannedTrial(f"c{index}", seed, {"x": index}) for index in range(2) for seed in range(2)]
WORKERS = st.sampled_from(["a", "b"])
EXAMPLES = int(os.environ.get("MTDLAB_CLAIM_EXAMPLES", "300"))


class ClaimStates(RuleBasedStateMachine):
    """The trials of one study, and what two workers do to them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(f"sqlite:///{Path(self.folder.name) / 'a.db'}", study_id=1)
        self.create()
        self.lives = {"a": 0, "b": 0}
        self.lost: list[Claim] = []

    def create(self) -> None:
        """Create the study with its planned trials."""
        self.store.write_study(study_row())
        assert self.store.add_trials(PLANNED) == {}
        self.held: dict[str, Claim] = {}
        self.deaths: dict[int, int] = {}
        self.states: dict[int, str] = {}

    def lose(self, worker: str, claim: Claim) -> None:
        """The process of a worker lost its trial; the worker goes on as another one."""
        self.lost.append(claim)
        self.lives[worker] += 1

    def owner(self, worker: str) -> dict[str, Any]:
        """The owner that a worker's process is now."""
        return {"host": worker, "pid": self.lives[worker]}

    @rule(worker=WORKERS)
    def claim(self, worker: str) -> None:
        """A worker without a trial claims the next one."""
        if worker in self.held:
            return
        claim = self.store.claim(self.owner(worker))
        ended = sum(state in ("COMPLETE", "FAIL") for state in self.states.values())
        assert (claim is None) == (len(PLANNED) == len(self.held) + ended)
        if claim is not None:
            assert claim.row not in {held.row for held in self.held.values()}
            assert self.states.get(claim.row, "WAITING") == "WAITING"
            self.held[worker], self.states[claim.row] = claim, "RUNNING"

    @rule(worker=WORKERS)
    @precondition(lambda self: self.held)
    def heartbeat(self, worker: str) -> None:
        """A heartbeat and the begin of a trial succeed for its owner."""
        if worker in self.held:
            claim = self.held[worker]
            assert self.store.heartbeat(claim, 3)
            assert self.store.begin(claim, {"x": 0}, {"steps": 4}, 3.0)

    @rule(worker=WORKERS, state=st.sampled_from(["COMPLETE", "FAIL"]))
    @precondition(lambda self: self.held)
    def finish(self, worker: str, state: str) -> None:
        """A worker records its result, once."""
        if worker in self.held:
            claim = self.held.pop(worker)
            assert self.store.finish(claim, Result(state, values={"score": 1.0}))
            assert not self.store.finish(claim, Result("FAIL"))
            self.states[claim.row] = state

    @rule(worker=WORKERS, suspended=st.booleans())
    @precondition(lambda self: self.held)
    def release(self, worker: str, suspended: bool) -> None:
        """A worker puts its trial back, or it is suspended and presumed dead: it may return."""
        if worker in self.held:
            claim = self.held.pop(worker)
            assert self.store.release(claim)
            self.states[claim.row] = "WAITING"
            if suspended:
                self.lose(worker, claim)

    @rule(worker=WORKERS)
    @precondition(lambda self: self.held)
    def die(self, worker: str) -> None:
        """A worker's death is counted; the third one fails its trial."""
        if worker in self.held:
            claim = self.held.pop(worker)
            count = self.deaths[claim.row] = self.deaths.get(claim.row, 0) + 1
            state = "FAIL" if count >= MOST_DEATHS else "WAITING"
            assert self.store.record_death(claim, "signal 9: Killed") == state
            assert self.store.record_death(claim, "signal 9: Killed") is None
            self.states[claim.row] = state
            self.lose(worker, claim)

    @rule(index=st.integers(0, 9))
    @precondition(lambda self: self.lost)
    def revive(self, index: int) -> None:
        """A worker that lost its trial changes nothing, whoever has it now."""
        claim = self.lost[index % len(self.lost)]
        assert not self.store.heartbeat(claim, 9)
        assert not self.store.begin(claim, {"x": 9}, {"steps": 9}, 9.0)
        assert not self.store.finish(claim, Result("COMPLETE", values={"score": 9.0}))
        assert not self.store.release(claim)
        assert self.store.record_death(claim, "late") is None

    @rule()
    def retry(self) -> None:
        """Failed trials wait again, and their deaths are forgotten."""
        failed = [row for row, state in self.states.items() if state == "FAIL"]
        self.store.retry_failed()
        for row in failed:
            self.states[row] = "WAITING"
            self.deaths.pop(row, None)

    @rule()
    def delete(self) -> None:
        """The study is deleted, and created again; running workers have lost their trials."""
        with self.store.database.writing() as session:
            session.execute(delete(StudyRow))
        for worker, claim in self.held.items():
            assert not self.store.heartbeat(claim, 1)
            assert not self.store.finish(claim, Result("COMPLETE"))
            self.lives[worker] += 1
        self.lost = []
        self.create()

    @invariant()
    def states_are_those_of_the_model(self) -> None:
        """Every planned trial is there once, in the state that the model has."""
        never_claimed = ["WAITING"] * (len(PLANNED) - len(self.states))
        assert self.store.counts() == Counter([*self.states.values(), *never_claimed])
        held = {claim.row for claim in self.held.values()}
        assert {owned.id for owned in self.store.owned()} == held

    def teardown(self) -> None:
        """Remove the database."""
        self.store.database.close()
        self.folder.cleanup()


def limited(examples: int, steps: int) -> Any:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )


class TestClaimStates(ClaimStates.TestCase):  # type: ignore[name-defined,misc]
    """A few sequences."""

    settings = limited(3, 20)


@pytest.mark.slow
class TestClaimStatesLong(ClaimStates.TestCase):  # type: ignore[name-defined,misc]
    """Many sequences."""

    settings = limited(EXAMPLES, 60)
