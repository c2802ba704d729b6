"""A trial's checkpoints while it runs: when one is due, and where a stopped trial continues."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from mtdlab.config import TrainerSettings
from mtdlab.errors import describe
from mtdlab.training.checkpoint import (
    Checkpoint,
    Facts,
    Found,
    find_checkpoint,
    save_checkpoint,
    state_bytes,
)
from mtdlab.training.inputs import RunInputs
from mtdlab.training.state import RunState
from mtdlab.trial.artifacts import ArtifactsError
from mtdlab.trial.environment import environment_of
from mtdlab.trial.shared_checkpoints import SharedCheckpoints

COST = 0.03
"""Largest share of the training time that checkpoints take."""
LEAST_SECONDS = 30.0
"""Between two checkpoints: what a killed trial loses at most, where saving is fast."""
ASSUMED_RATE = 2e8
"""Bytes per second at which a checkpoint is written, until one has been."""
SAME = ("settings", "corpus", "encoder", "evaluation")
"""Facts in which a checkpoint must agree with the trial that continues from it."""
MAY_DIFFER = ("device", "processor", "versions")
"""Facts in which it may differ, at the price of equal bits."""
NOT_SAVED = "checkpoint not saved: "
"""Begins the note of a disk that fails; a trial has one."""
NOT_SHARED = "checkpoint not shared: "
"""The same of the place that all machines share."""
THREADS = "threads"
"""Taken over from the checkpoint."""


def describe_run(settings: TrainerSettings, inputs: RunInputs) -> dict[str, str]:
    """What a checkpoint's run computes, and with what."""
    environment = environment_of(settings, inputs)
    return environment.sentences() | {
        "settings": settings.model_dump_json(),
        "device": f"{environment.device}, {environment.precision}",
        THREADS: str(environment.threads),
    }


class TrialCheckpoints:
    """The checkpoints of one trial, in a folder of its own, and those that all machines share."""

    def __init__(self, folder: Path, shared: SharedCheckpoints | None = None) -> None:
        self.folder, self.shared = folder, shared
        self._facts: Facts = {}
        self._state: RunState | None = None
        self._saved_at, self._cost = time.monotonic(), 0.0
        self.notes: list[str] = []

    @contextmanager
    def continued(self, state: RunState, facts: Facts) -> Iterator[None]:
        """Load the newest intact checkpoint into `state`, if there is one, and save this state.

        The block then runs with the number of threads with which the trial began: sums over
        another number of threads end with other bits. `facts` is `describe_run` of this trial.
        """
        self._state, self._facts = state, facts
        found = self._newest()
        self.notes.extend(found.damaged)
        threads = torch.get_num_threads()
        if found.checkpoint is not None and self._fits(found.checkpoint):
            state.load_state_dict(found.checkpoint.state)
            self._facts = dict(facts) | {THREADS: found.checkpoint.facts[THREADS]}
            torch.set_num_threads(int(self._facts[THREADS]))
            self.notes.append(self._describe_resume(found.checkpoint))
        self._cost = state_bytes(state.state_dict()) / ASSUMED_RATE
        self._saved_at = time.monotonic()
        try:
            yield
        finally:
            torch.set_num_threads(threads)

    def due(self) -> bool:
        """Whether the last checkpoint is old enough for what another one costs."""
        return time.monotonic() - self._saved_at >= max(LEAST_SECONDS, self._cost / COST)

    def save(self) -> bool:
        """Save the state now, share it, and return whether it is saved on this machine.

        A disk or a shared place that fails is noted and ends nothing.
        """
        if self._state is None:
            return False
        started, saved = time.monotonic(), False
        try:
            path = save_checkpoint(
                self.folder, self._state.step, self._state.state_dict(), self._facts
            )
            saved = True
            if self.shared is not None:
                self.shared.upload(path)
        except ArtifactsError as error:
            self._note_once(NOT_SHARED, error)
        except OSError as error:
            self._note_once(NOT_SAVED, error)
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - started
        return saved

    def remove_shared(self) -> list[str]:
        """Remove the shared checkpoints of a trial that has ended; returns an error as a note."""
        try:
            if self.shared is not None:
                self.shared.remove()
        except ArtifactsError as error:
            return [f"shared checkpoints not removed: {error}"]
        return []

    def _note_once(self, beginning: str, error: Exception) -> None:
        if not any(note.startswith(beginning) for note in self.notes):
            self.notes.append(f"{beginning}{describe(error)}")

    def _newest(self) -> Found:
        """The newest intact checkpoint, here or in the shared place.

        A trial that another machine took further does not go on from the older one of this machine.
        """
        found = find_checkpoint(self.folder)
        if self.shared is None:
            return found
        try:
            for step in self.shared.steps():
                if found.checkpoint is not None and found.checkpoint.step >= step:
                    break
                self.shared.download(step, self.folder)
                found = find_checkpoint(self.folder)
        except (ArtifactsError, OSError) as error:
            self.notes.append(f"shared checkpoints not read: {describe(error)}")
        return found

    def _fits(self, checkpoint: Checkpoint) -> bool:
        others = [name for name in SAME if checkpoint.facts.get(name) != self._facts[name]]
        if others:
            self.notes.append(
                f"checkpoint of step {checkpoint.step} was not used: it was saved with different "
                f"{' and '.join(others)}"
            )
        return not others

    def _describe_resume(self, checkpoint: Checkpoint) -> str:
        changed = [name for name in MAY_DIFFER if checkpoint.facts.get(name) != self._facts[name]]
        note = f"resumed after step {checkpoint.step}"
        if changed:
            note += f" with other {' and '.join(changed)}: its numbers may differ in the last bits"
        return note
