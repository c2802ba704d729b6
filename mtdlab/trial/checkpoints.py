"""A trial's checkpoints while it runs: when one is due, and where a stopped trial continues.

Those that all machines share lie in the shared place:

    STUDY/checkpoints/IDENTITY/CONFIGURATION-SEED/step-0000000160/  the files of a checkpoint
    STUDY/checkpoints/IDENTITY/CONFIGURATION-SEED/model/            the model of an ended trial

IDENTITY is that of the database (`model_folders`).
The manifest is uploaded last. A checkpoint without one is not read; what is read is verified as one
of this machine.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from mtdlab.data_paths import RUN
from mtdlab.errors import describe
from mtdlab.files import new_folder
from mtdlab.settings import TrainerSettings
from mtdlab.training.checkpoint import (
    FILES,
    KEPT,
    MANIFEST,
    Checkpoint,
    Facts,
    Found,
    checkpoint_name,
    find_checkpoint,
    save_checkpoint,
    state_bytes,
)
from mtdlab.training.inputs import RunInputs
from mtdlab.training.state import RunState
from mtdlab.trial.artifacts import Artifacts, ArtifactsError
from mtdlab.trial.environment import NO_CODE, environment_of
from mtdlab.trial.model_folders import STAGED

COST = 0.03
"""Largest share of the training time that checkpoints take."""
LEAST_SECONDS = 30.0
"""Between two checkpoints: what a killed trial loses at most, where saving is fast."""
ASSUMED_RATE = 2e8
"""Bytes per second at which a checkpoint is written, until one has been."""
SAME = ("settings", "corpus", "encoder", "evaluation", "code")
"""Facts in which a checkpoint must agree with the trial that continues from it."""
MAY_DIFFER = ("device", "processor", "versions")
"""Facts in which it may differ, at the price of equal bits."""
THREADS = "threads"
"""Taken over from the checkpoint."""
_STEP = re.compile(r"step-(\d{10})")


def describe_run(
    settings: TrainerSettings, inputs: RunInputs, code: Mapping[str, str] = NO_CODE
) -> dict[str, str]:
    """What a checkpoint's run computes, and with what."""
    environment = environment_of(settings, inputs, code)
    return environment.sentences() | {
        "settings": settings.model_dump_json(),
        "device": f"{environment.device}, {environment.precision}",
        THREADS: str(environment.threads),
    }


class SharedCheckpoints:
    """Those of one trial, below `name`. All methods raise ArtifactsError."""

    def __init__(self, artifacts: Artifacts, folder: Path) -> None:
        """`folder` is the local one, which has the name of the trial's place."""
        self.artifacts = artifacts
        identity, study, trial = folder.parts[-3:]
        self.name = f"{study}/checkpoints/{identity}/{trial}"

    def upload(self, checkpoint: Path) -> None:
        """Copy a checkpoint's folder, then remove all but the two newest."""
        self.artifacts.upload(checkpoint, f"{self.name}/{checkpoint.name}", last=MANIFEST)
        files = self.artifacts.files(self.name)
        kept = {checkpoint_name(step) for step in _complete(files)[:KEPT]}
        # it is shared already; what stays is removed after the next one
        with suppress(ArtifactsError):
            for old in {file.partition("/")[0] for file in files} - kept:
                self.artifacts.remove(f"{self.name}/{old}")

    def steps(self) -> list[int]:
        """The steps of the complete checkpoints, the newest first."""
        return _complete(self.artifacts.files(self.name))

    def download(self, step: int, folder: Path) -> None:
        """Copy a checkpoint into the local folder of the trial. Raises OSError if that fails."""
        name = checkpoint_name(step)
        with new_folder(folder / name, replace=True) as building:
            self.artifacts.download(f"{self.name}/{name}", FILES, building)

    def upload_model(self, folder: Path) -> None:
        """Copy the staged model of the trial."""
        self.artifacts.upload(folder, f"{self.name}/{STAGED}", last=str(RUN))

    def download_model(self, folder: Path) -> None:
        """Copy the staged model into a local folder, if there is a complete one."""
        files = self.artifacts.files(f"{self.name}/{STAGED}")
        if str(RUN) in files:
            with new_folder(folder, replace=True) as building:
                self.artifacts.download(f"{self.name}/{STAGED}", files, building)

    def remove(self) -> None:
        """Remove all of them."""
        self.artifacts.remove(self.name)


def _complete(files: list[str]) -> list[int]:
    """The steps of the checkpoints whose manifest is there, the newest first."""
    found = [_STEP.fullmatch(file.removesuffix(f"/{MANIFEST}")) for file in files]
    return sorted((int(match[1]) for match in found if match), reverse=True)


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

        A disk or a shared place that fails is noted, each once, and ends nothing.
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
        except (ArtifactsError, OSError) as error:
            beginning = f"checkpoint not {'shared' if saved else 'saved'}: "
            if not any(note.startswith(beginning) for note in self.notes):
                self.notes.append(f"{beginning}{describe(error)}")
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

    def _newest(self) -> Found:
        """The newest intact checkpoint, of this machine or of another that went further."""
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
        """Whether the trial continues from a checkpoint; notes it, and what differs."""
        step, facts = checkpoint.step, checkpoint.facts
        differ = [name for name in (*SAME, *MAY_DIFFER) if facts.get(name) != self._facts.get(name)]
        if others := [name for name in differ if name in SAME]:
            what = f"was not used: it was saved with different {' and '.join(others)}"
            self.notes.append(f"checkpoint of step {step} {what}")
            return False
        more = f" with other {' and '.join(differ)}: its numbers may differ in the last bits"
        self.notes.append(f"resumed after step {step}{more if differ else ''}")
        return True
