"""How a sweep's connections to SQLite keep what was committed through a power failure."""

import json
import subprocess
import sys
from pathlib import Path

SETTINGS = ("journal_mode", "synchronous", "foreign_keys")
OPEN = f"""
import json, sys
from mtdlab.store.store import Store
with Store(sys.argv[1], 1).database.engine.connect() as connection:
    found = {{
        setting: connection.exec_driver_sql("PRAGMA " + setting).scalar() for setting in {SETTINGS}
    }}
    found["begun"] = connection.connection.in_transaction
print(json.dumps(found))
"""
FULL = 2
"""`synchronous`: every commit waits until journal and database are on the disk."""


def test_commits_are_synced_to_the_disk(tmp_path: Path) -> None:
    """In a process of its own: the tests' own connections do not wait for the disk."""
    command = [sys.executable, "-c", OPEN, f"sqlite:///{tmp_path / 'a.db'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["synchronous"] == FULL
    # a rollback journal, which the first connection after a power failure plays back
    assert found["journal_mode"] == "delete"
    assert found["begun"], "no transaction with a write lock"
    assert found["foreign_keys"] == 1
