"""How a sweep's connections to SQLite keep what was committed through a power failure."""

import json
import subprocess
import sys
from pathlib import Path

SETTINGS = ("journal_mode", "synchronous", "foreign_keys")
OPEN = f"""
import json, sys
from mtdlab.store import Store
from mtdlab.sweep.optuna_study import open_storage
url = sys.argv[1]
engines = {{"mtdlab": Store(url, 1)._engine, "optuna": open_storage(url).engine}}
found = {{}}
for name, engine in engines.items():
    with engine.connect() as connection:
        found[name] = {{
            setting: connection.exec_driver_sql("PRAGMA " + setting).scalar()
            for setting in {SETTINGS}
        }}
        found[name]["begun"] = connection.connection.in_transaction
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
    for name in ("mtdlab", "optuna"):
        assert found[name]["synchronous"] == FULL, name
        # a rollback journal, which the first connection after a power failure plays back
        assert found[name]["journal_mode"] == "delete", name
        assert found[name]["begun"], f"{name}: no transaction with a write lock"
    assert found["mtdlab"]["foreign_keys"] == 1
