"""What the documentation says about the code is so: names of files, intervals, counts."""

import re
from pathlib import Path

import pytest
from markdown_blocks import DOCUMENTS, ROOT, prose_of

from mtdlab.store.claims import MOST_DEATHS
from mtdlab.store.owner import HEARTBEAT_SECONDS, SILENT_SECONDS
from mtdlab.store.restarts import RESTART_SECONDS
from mtdlab.sweep.cluster import RECONNECT_SECONDS
from mtdlab.sweep.fork_server import ORPHAN_SECONDS
from mtdlab.training.checkpoint import KEPT
from mtdlab.trial.checkpoints import COST, LEAST_SECONDS
from mtdlab.trial.heartbeat import SWEEP_SECONDS

RELIABILITY, MACHINES = "explanation/reliability.md", "how-to/many-machines.md"
WORDS = {2: "two", 3: "three", 10: "ten", 60: "a minute", 120: "two minutes", 600: "ten minutes"}
STATEMENTS = (
    (RELIABILITY, f"is saved where the last is {LEAST_SECONDS:.0f} seconds old or more"),
    (RELIABILITY, f"takes at most {100 * COST:.0f} % of the time"),
    (RELIABILITY, f"The {WORDS[KEPT]} newest are kept"),
    (RELIABILITY, f"whose process died {WORDS[MOST_DEATHS]} times"),
    (RELIABILITY, f"{WORDS[int(SILENT_SECONDS)]} after its last heartbeat"),
    (RELIABILITY, f"end after {WORDS[int(ORPHAN_SECONDS)]} seconds at the latest"),
    (RELIABILITY, f"heartbeat every {WORDS[int(HEARTBEAT_SECONDS)]} seconds"),
    (RELIABILITY, f"an owner and a heartbeat too, every {WORDS[int(SWEEP_SECONDS)]} seconds"),
    (MACHINES, f"within {SWEEP_SECONDS:.0f} seconds and after the current step"),
    (MACHINES, f"heartbeat for {WORDS[int(SILENT_SECONDS)]}"),
    (MACHINES, f"for, up to {WORDS[int(RESTART_SECONDS)]}"),
    (MACHINES, f"again within {WORDS[int(RECONNECT_SECONDS)]} is found again"),
)
FOLDERS = ("mtdlab", "analysis", "tests", "studies", "docs")
PACKAGES = (Path(), Path("mtdlab"), Path("analysis"), Path("tests"))


@pytest.mark.parametrize(("document", "statement"), STATEMENTS)
def test_an_interval_is_that_of_the_code(document: str, statement: str) -> None:
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    assert statement in " ".join(text.split())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(document: Path) -> None:
    """A file of one of the folders, or a module named from within its package."""
    for name in re.findall(r"`([\w./-]+)`", prose_of(document)):
        first, slash, _ = name.partition("/")
        if slash and (first in FOLDERS or name.endswith(".py")):
            assert any((ROOT / package / name).exists() for package in PACKAGES), name
