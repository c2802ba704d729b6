"""Exported studies whose rows were changed: imported and read, or refused in a sentence."""

import json
import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtdlab.analysis.data.environment import (
    Environment,
    RecordedCorpus,
    RecordedEncoder,
    RecordedEvaluation,
)
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.cli import main
from mtdlab.commands.study_exchange import export_study
from mtdlab.config.reader import read_study
from mtdlab.evaluation.items import similarities
from mtdlab.store.claims import Result
from mtdlab.store.records import RULES
from mtdlab.store.store import Store
from mtdlab.store.tables import Base, Schema, SweepRow
from mtdlab.sweep.run import Execution, sweep
from mtdlab.trial import trainer
from mtdlab.trial.worker import open_in_process

STUDY = """\
study: tampered
trainer: {steps: 4, batch_size: 8, queue_size: 16, initial_queue_size: 0}
search: {ema_decay: [0.5, 0.75, 0.9]}
seeds: [0, 1, 2]
until: {decided: true, max_seeds: 4, looks: [3, 4]}
beyond_run: keep
"""
GOOD = """\
study: good
trainer: {steps: 4}
search: {ema_decay: {low: 0.5, high: 0.9}}
sampler: random
trials: 2
seeds: [0]
"""
QUICK = 8
SLOW = int(os.environ.get("MTDLAB_TAMPERED", "2000"))
AT_ONCE = 100
"""Variants of one test."""
CELLS: tuple[Any, ...] = (
    *(None, "", "abc", 0, -1, 2**31, 2**63 - 1, 0.5, 1e308, float("inf")),
    *("'", "=cmd|'/C calc'!A0", "../../x", "a\0b", b"\xff\xfe"),
    *(b"\x00\x00\x80\x7f" * 3, b"\x00\x00\x80\x3f" * 2, "COMPLETE", "RUNNING"),
    *("null", "{}", "[]", "[1, 2]", '"text"', '{"a": NaN}', '{"a": {"b": [1e999]}}'),
    *("[" * 100_000, "x" * 10_000, "2026-13-45"),
)
PARTS = (
    *(None, "", "abc", -1, 2**40, 10**400, 1.5, float("nan"), True),
    *([], {}, [[]], {"a": {"b": 1}}),
)


def trained(watch: Any) -> tuple[Result, None]:
    """What a trial records, with every kind of array."""
    settings = watch.settings
    score = 40 + 10 * settings.ema_decay + settings.seed % 3
    curves = ("loss", "ema_decay", "queue_fill", "score")
    arrays = {f"curve/{name}": np.ones(4, np.float32) for name in curves}
    probes = ("step", "cosine_different", "cosine/1")
    arrays |= {f"probe/{name}": np.arange(1, 4, dtype=np.float32) for name in probes}
    arrays |= {f"spectrum/{name}": np.ones(6, np.float32) for name in ("before", "after")}
    watch.evaluated(2, score)
    names = ("score", "score_before", "alignment", "uniformity", "mean_cosine", "wall_seconds")
    values = dict.fromkeys(names, score) | {"best_step": 2}
    environment = Environment(
        RecordedCorpus("a", 24_000, "sentences", "0f", "[UNK]", (0.5, 1.5)),
        RecordedEncoder("b", 890_000, "cls pooling", "bert"),
        RecordedEvaluation("c", 15, 16, "MR", "STS12", {"MR": "10 of 20"}),
        device="cpu",
        precision="float32",
        threads=1,
        processor="x",
        versions={"torch": "2"},
        commit="ab12",
    )
    scores = {"sts_dev": score, "sts_test": score}
    items = {"sts_test": similarities([0.1, 0.9, 0.4], [1, 5, 2.5], "ab" * 32)}
    return Result("COMPLETE", "", values, scores, arrays, environment, items=items), None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with an export of one study, and a database with another."""
    made = tmp_path_factory.mktemp("tampered")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.setattr("mtdlab.trial.trainer.check_inputs", lambda *_, **__: {"encoder": "0" * 8})
        patch.setattr(trainer, "train_trial", trained)
        for name, text in (("tampered", STUDY), ("good", GOOD)):
            Path(f"{name}.yaml").write_text(text)
            url, spec = f"sqlite:///{name}-source.db", read_study(made / f"{name}.yaml")
            sweep(
                spec,
                url,
                Execution(jobs=1),
                invocation=Invocation("sweep", (f"{name}.yaml",), {"set": ("seeds=[0]",)}),
            )
            Store(url, 1).record_model(1, "gpu-7", "/models/x")
            open_in_process.cache_clear()
        export_study("tampered", "sqlite:///tampered-source.db", made / "export.db")
        # by its digest each of the changes would be found
        with closing(sqlite3.connect("export.db")) as connection:
            connection.execute("DROP TABLE mtdlab_facts")
        Path("good-source.db").rename("target.db")
        yield made


def columns_of(path: Path) -> list[tuple[str, str]]:
    """Every table with every column of a database."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [
            (table, column)
            for (table,) in sorted(tables.fetchall())
            for _, column, *_ in connection.execute(f"PRAGMA table_info({table})")
        ]


def tamper(path: Path, seed: int) -> str:
    """Change the database at one column, which the seed tells; what was done."""
    drawn, columns = random.Random(seed), columns_of(path)
    table, column = columns[seed % len(columns)]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for _ in range(20):
            rows = connection.execute(f'SELECT rowid, "{column}" FROM {table}').fetchall()
            if not rows:
                return f"{table} is empty"
            row, before = drawn.choice(rows)
            where = drawn.choice([f"rowid = {row}"] * 3 + ["1"])
            action = drawn.random()
            try:
                if action < 0.05:
                    connection.execute(f"DELETE FROM {table} WHERE {where}")
                    return f"{table}: rows deleted"
                value = changed_part(before, drawn) if action < 0.4 else drawn.choice(CELLS)
                if value == before:
                    continue
                statement = f'UPDATE {table} SET "{column}" = ? WHERE {where}'
                if value == b"\xff\xfe":
                    statement = statement.replace("?", "CAST(? AS TEXT)")
                connection.execute(statement, (value,))
            except (sqlite3.IntegrityError, OverflowError):
                continue
            return f"{table}.{column} = {str(value)[:60]!r} where {where}"
    return "nothing"


def changed_part(before: Any, drawn: random.Random) -> Any:
    """A value whose JSON has one part changed, removed or added; a near one of another type."""
    try:
        found = json.loads(before)
    except (TypeError, ValueError):
        if isinstance(before, bytes):
            return before[: drawn.randrange(len(before))]
        return before * 2 if isinstance(before, str) else f"{before}x"
    place = found
    while isinstance(place, dict | list) and place:
        key = drawn.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if isinstance(place[key], dict | list) and drawn.random() < 0.6:
            place = place[key]
            continue
        if drawn.random() < 0.3:
            del place[key]
        else:
            place[key] = drawn.choice(PARTS)
        return json.dumps(found)
    return json.dumps(drawn.choice(PARTS))


def call(patch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit code of a command. Raises what it would end in a traceback with."""
    patch.setattr(sys, "argv", ["mtdlab", *words])
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    raise AssertionError("a command always exits")


def contents(path: Path) -> dict[str, list[Any]]:
    """All rows of a database by table."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall()
            for (name,) in tables.fetchall()
        }


def try_variant(
    folder: Path, work: Path, seed: int, patch: pytest.MonkeyPatch, *, analysed: bool = False
) -> bool:
    """Import and read one variant, and if asked to its verdict, of some its page, too.

    Whether it was imported.
    """
    variant, target = work / "variant.db", work / "target.db"
    shutil.copy(folder / "export.db", variant)
    shutil.copy(folder / "target.db", target)
    done = tamper(variant, seed)
    before = contents(target)
    step = ""
    try:
        step = "import"
        code = call(patch, "import-study", str(variant), "--storage", str(target))
        assert code in (0, 2)
        if code == 2:
            assert contents(target) == before
        else:
            step = "read the others"
            assert call(patch, "studies", "--storage", str(target)) == 0
            assert call(patch, "show", "good", "1", "--storage", str(target)) == 0
            step = "read the imported one"
            after = contents(target)
            [imported] = {row[1] for row in after["mtdlab_studies"]} - {"good"}
            assert call(patch, "show", imported, "0", "--storage", str(target)) in (0, 5)
            assert call(patch, "doctor", imported, "--storage", str(target)) in (0, 6)
            if analysed:
                assert call(patch, "show", imported, "--storage", str(target)) == 0
            if analysed and seed % 25 == 0:
                step = "report the imported one"
                out = str(work / "reports")
                words = ("report", "--study", imported, "--storage", str(target), "--out", out)
                assert call(patch, *words) in (0, 5)
        step = "read it where it is"
        assert call(patch, "studies", "--storage", str(variant)) in (0, 4)
        assert call(patch, "show", "tampered", "0", "--storage", str(variant)) in (0, 4, 5)
        assert call(patch, "doctor", "--storage", str(variant)) in (0, 4, 5, 6)
        if analysed and seed % 3 == 0:
            assert call(patch, "show", "tampered", "--storage", str(variant)) in (0, 4, 5)
    except Exception as error:
        raise AssertionError(f"variant {seed} ({done}), {step}: {error!r}") from error
    return code == 0


def test_every_column_has_its_shape() -> None:
    own = {table.name: table for table in Base.metadata.sorted_tables}
    for without in (Schema, SweepRow):
        del own[without.__tablename__]
    found = {name: set(table.columns.keys()) for name, table in own.items()}
    assert found == {kind.__tablename__: set(columns) for kind, columns in RULES.items()}


def test_an_export_that_was_not_changed_is_imported(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(folder / "target.db", tmp_path / "target.db")
    words = ("import-study", str(folder / "export.db"), "--storage", str(tmp_path / "target.db"))
    assert call(monkeypatch, *words) == 0
    filled = {table for table, rows in contents(tmp_path / "target.db").items() if rows}
    assert filled >= {kind.__tablename__ for kind in RULES}


@pytest.mark.slow
@pytest.mark.usefixtures("few_simulated_tables")
def test_a_few_changed_exports(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = range(0, 21 * QUICK, 21)
    assert {try_variant(folder, tmp_path, seed, monkeypatch) for seed in seeds} == {True, False}


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
@pytest.mark.parametrize("first", range(0, SLOW, AT_ONCE))
def test_changed_exports(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    found = {
        try_variant(folder, tmp_path, seed, monkeypatch, analysed=True)
        for seed in range(first, first + AT_ONCE)
    }
    assert found == {True, False}
