"""A trial that runs out of memory: it fails with its reason, and the next one has the memory."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mtdlab import load_study
from mtdlab.methods.base import Step
from mtdlab.methods.mocose import MoCoSE
from mtdlab.sweep import run as runs
from tests.tiny_studies import TinyStudy

LARGE = 400_000_000
"""Bytes that the failing step holds."""
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    if request.param == "cpu" and not Path("/proc/self/statm").exists():
        pytest.skip("no /proc to read memory from")
    return str(request.param)


def held(device: str) -> int:
    """Bytes that are allocated on the GPU, or resident of this process."""
    if device == "cuda":
        return torch.cuda.memory_allocated()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def test_memory_returns_after_a_trial_that_ran_out_of_it(
    tiny_study: TinyStudy, device: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second step of the first trial holds much and then lacks memory."""
    forward, at_steps = MoCoSE.forward, list[int]()

    def failing(method: MoCoSE, step: int, views: Any) -> Step:
        at_steps.append(held(device))
        if method.settings.ema_decay == 0.5 and step == 1:
            # kept by the frames of the traceback for as long as the error is
            kept: Tensor = torch.ones(LARGE // 4, device=device)
            at_steps.append(held(device))
            raise MemoryError(f"{kept.nbytes} bytes are held")
        return forward(method, step, views)

    monkeypatch.setattr(MoCoSE, "forward", failing)
    spec = tiny_study({"device": device}, seeds=[0])
    ended = runs.sweep(spec, url, runs.Execution(jobs=1), models=tmp_path / "models")
    assert (ended.exit_code, ended.counts) == (3, {"COMPLETE": 2, "FAIL": 1})
    trials = load_study("kept", url).trials.set_index("ema_decay")
    failed = trials.loc[0.5, ["state", "reason_code", "reason"]]
    assert failed.tolist() == ["FAIL", "oom", "oom: out of memory"]
    # two steps, the failing one after its allocation, then those of the next trial
    before, at_failure, later = at_steps[1], at_steps[2], at_steps[3]
    assert at_failure - before > 0.9 * LARGE
    assert later - before < 0.2 * LARGE
