"""The checkpoints of one trial in the place that all machines share.

    STUDY/checkpoints/CONFIGURATION-SEED/step-0000000160/   the files of a checkpoint
    STUDY/checkpoints/CONFIGURATION-SEED/model/             the model of a trial that has ended

The manifest is uploaded last. A checkpoint without one is not read; what is read is verified as one
of this machine.
"""

import re
from contextlib import suppress
from pathlib import Path

from mtdlab.data_paths import RUN
from mtdlab.files import new_folder
from mtdlab.training.checkpoint import FILES, KEPT, MANIFEST, checkpoint_name
from mtdlab.trial.artifacts import Artifacts, ArtifactsError
from mtdlab.trial.model_folders import STAGED

_STEP = re.compile(r"step-(\d{10})")


def checkpoints_place(study: str) -> str:
    """The name of the folder of a study's checkpoints."""
    return f"{study}/checkpoints"


class SharedCheckpoints:
    """Those of one trial, below `name`. All methods raise ArtifactsError."""

    def __init__(self, artifacts: Artifacts, name: str) -> None:
        self.artifacts, self.name = artifacts, name

    @classmethod
    def of(cls, artifacts: Artifacts, folder: Path) -> "SharedCheckpoints":
        """Those of a trial with a local folder, which has the name of the trial's place."""
        return cls(artifacts, f"{checkpoints_place(folder.parent.name)}/{folder.name}")

    def upload(self, checkpoint: Path) -> None:
        """Copy a checkpoint's folder, then remove all but the two newest."""
        self.artifacts.upload(checkpoint, f"{self.name}/{checkpoint.name}", last=MANIFEST)
        files = self.artifacts.files(self.name)
        kept = {checkpoint_name(step) for step in _complete(files)[:KEPT]}
        # it is shared already; what stays is removed after the next one
        with suppress(ArtifactsError):
            for old in {each.partition("/")[0] for each in files} - kept:
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
                for each in files:
                    (building / each).parent.mkdir(parents=True, exist_ok=True)
                self.artifacts.download(f"{self.name}/{STAGED}", files, building)

    def remove(self) -> None:
        """Remove all of them."""
        self.artifacts.remove(self.name)


def _complete(files: list[str]) -> list[int]:
    """The steps of the checkpoints whose manifest is there, the newest first."""
    found = [_STEP.fullmatch(each.removesuffix(f"/{MANIFEST}")) for each in files]
    return sorted((int(each[1]) for each in found if each), reverse=True)
