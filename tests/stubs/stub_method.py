"""A method for tests of whole sweeps: its trials take milliseconds, in each process of a sweep.

`mtdlab sweep FILE --import stub_method.py` imports it in the sweep and in its workers, where it
replaces training, the checks of the inputs and the writing of the model. A trial has the study's
number of steps; its state is a sum over its steps, so that its score tells whether it was resumed
with the right state. What the file `stub.json` of the working folder holds happens to it:

    seconds         of one step; 0 without it
    export_seconds  of the writing of a model; 0 without it
    checkpoint_every  steps between two checkpoints; 2 without it
    die             points (`stub_sweep.POINTS`) at each of which a process ends, once
    always_die      a configuration's seed whose trials end their process at step 3
    fail            a configuration's seed whose trials fail
    fork            whether a process forks itself at step 3, and waits for its fork's exit code,
                    which it writes to `forked.txt`
    host            the name of this machine for its owners
    silent_seconds  after which an owner on another machine counts as dead

The process and the step with which an attempt begins are lines of `attempts.txt`.
"""

import json
import os
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from mtdlab.errors import TrialError
from mtdlab.files import new_folder
from mtdlab.methods.simcse import SimCSE
from mtdlab.store import owner
from mtdlab.store.claims import Claims, Result
from mtdlab.store.store import Store
from mtdlab.training import checkpoint, inputs
from mtdlab.trial import best_model, checkpoints, trainer
from mtdlab.trial.best_model import Trained
from mtdlab.trial.heartbeat import ClaimLost
from mtdlab.trial.results import ended_early
from mtdlab.trial.signals import Interrupted

FACTS = ("corpus", "encoder", "evaluation", "device", "processor", "versions", "settings")
KILLED = 9


class Stub(SimCSE):
    """A method of another name; its trials are replaced below."""

    name = "stub"
    title = "Stub"


class State:
    """The state of a stub trial: its step, and the sum of its steps."""

    def __init__(self) -> None:
        self.step, self.total = 0, torch.zeros(1, dtype=torch.float64)

    def state_dict(self) -> dict[str, Any]:
        """The state to be saved."""
        return {"step": self.step, "total": self.total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        self.step, self.total = state["step"], state["total"]


def options() -> dict[str, Any]:
    """What the test asks for."""
    try:
        return json.loads(Path("stub.json").read_text())
    except FileNotFoundError:
        return {}


def die_once(point: str) -> None:
    """End the process at a point that the test names, if no process has ended there."""
    if point not in options().get("die", ()):
        return
    try:
        os.close(os.open(f"died-{point.replace(' ', '-')}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), KILLED)


def dying(module: Any, name: str, *, before: str = "", after: str = "") -> None:
    """Replace a function by one that ends the process before or after its work."""
    original = getattr(module, name)

    def replacement(*arguments: Any, **named: Any) -> Any:
        die_once(before)
        result = original(*arguments, **named)
        die_once(after)
        return result

    setattr(module, name, replacement)


def train(monitor: Any) -> tuple[Result, Trained | None]:
    """A trial: sums its steps."""
    settings = monitor.settings
    chosen, state = options(), State()
    facts = dict.fromkeys(FACTS, "stub") | {"settings": settings.model_dump_json(), "threads": "1"}
    with monitor.checkpoints.continued(state, facts), Path("attempts.txt").open("a") as log:
        log.write(f"{os.getpid()} {monitor.run.claim.row} {state.step}\n")
        log.flush()
        monitor.run.heartbeat.beat()
        die_once("first heartbeat")
        try:
            while state.step < settings.steps:
                time.sleep(chosen.get("seconds", 0))
                state.step += 1
                state.total += state.step * settings.temperature
                if settings.seed == chosen.get("always_die") and state.step == 3:
                    os.kill(os.getpid(), KILLED)
                if settings.seed == chosen.get("fail") and state.step == 3:
                    raise TrialError("the loss is nan at step 3", "nan_loss")
                if chosen.get("fork") and state.step == 3 and (child := os.fork()):
                    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                    Path("forked.txt").write_text(f"{code}")
                monitor(state.step, None)
                if state.step % chosen.get("checkpoint_every", 2) == 0:
                    monitor._save()
        except (Interrupted, ClaimLost):
            raise
        except Exception as error:
            return ended_early(error, monitor), None
    score = float(state.total)
    scores = {"sts_dev": score, "sts_test": score}
    values = {"score": score, "wall_seconds": 0.1}
    die_once("before finish")
    return Result("COMPLETE", values=values, scores=scores), Trained(settings, None, None, {})


def save_model(folder: Path, *_: object) -> None:
    """Write a folder that is like a model's, but for what it holds."""
    with new_folder(folder, replace=True) as building:
        (building / "mtdlab").mkdir()
        time.sleep(options().get("export_seconds", 0))
        die_once("export")
        if options().get("die_in_export"):
            os.kill(os.getpid(), KILLED)
        (building / "mtdlab" / "run.json").write_text("{}")


trainer.train_trial = train
if "host" in options():
    owner.platform = SimpleNamespace(node=partial(str, options()["host"]))
owner.SILENT_SECONDS = options().get("silent_seconds", owner.SILENT_SECONDS)
best_model.save_model = save_model
inputs.check_inputs = lambda *_, **__: {}
dying(Store, "claim", after="claim")
dying(Claims, "begin", after="begin")
dying(Claims, "finish", after="after finish")
dying(checkpoint, "save_file", after="inside checkpoint")
dying(checkpoint, "_describe", before="before manifest")
dying(checkpoints, "save_checkpoint", after="after manifest")
