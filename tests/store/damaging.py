"""Ways to damage a SQLite database, each drawn from a random number generator."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

PAGE = 1024
TABLES = (
    "mtdlab_schema",
    "mtdlab_studies",
    "mtdlab_trials",
    "mtdlab_scores",
    "mtdlab_arrays",
    "mtdlab_plans",
    "studies",
    "trials",
    "trial_values",
    "trial_user_attributes",
    "version_info",
    "alembic_version",
)


def cut(path: Path, random: Random) -> None:
    """Keep a multiple of a 16th of the file, or a random number of bytes."""
    content = path.read_bytes()
    sixteenth = random.randrange(16) * len(content) // 16
    path.write_bytes(content[: random.choice([sixteenth, random.randrange(len(content))])])


def flip(path: Path, random: Random) -> None:
    """Change one byte."""
    content = bytearray(path.read_bytes())
    at = random.randrange(len(content))
    content[at] ^= random.randrange(1, 256)
    path.write_bytes(content)


def zero_pages(path: Path, random: Random) -> None:
    """Fill some pages with zeros."""
    _fill(path, random, lambda: bytes(PAGE))


def randomise_pages(path: Path, random: Random) -> None:
    """Fill some pages with random bytes."""
    _fill(path, random, lambda: random.randbytes(PAGE))


def _fill(path: Path, random: Random, page: Callable[[], bytes]) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(random.choice([1, 1, 3, 10])):
        at = random.randrange(len(content) // PAGE) * PAGE
        content[at : at + PAGE] = page()
    path.write_bytes(content)


def drop_table(path: Path, random: Random) -> None:
    """Drop a table of mtdlab or Optuna."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"DROP TABLE {random.choice(TABLES)}")
        database.commit()


def replace_by_text(path: Path, random: Random) -> None:
    """Write a text file of some length in its place."""
    path.write_text("study: a\n" * random.randrange(1, 500))


def empty(path: Path, _random: Random) -> None:
    """Leave 0 bytes."""
    path.write_bytes(b"")


def newer_schema(path: Path, random: Random) -> None:
    """Record a schema version that does not exist yet."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE mtdlab_schema SET version = ?", (random.randrange(50, 90),))
        database.commit()


def replace_by_folder(path: Path, _random: Random) -> None:
    """Make a folder in its place."""
    path.unlink()
    path.mkdir()


DAMAGES = (
    cut,
    flip,
    zero_pages,
    randomise_pages,
    drop_table,
    replace_by_text,
    empty,
    newer_schema,
    replace_by_folder,
)
COMMON = (cut, flip, zero_pages, randomise_pages, drop_table)
