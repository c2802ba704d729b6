"""This module reads and writes facts about a database as a whole, in a table made with the first.

`identity` is drawn at random: by it folders know the database, wherever its file lies and by
whichever URL it is opened. `digest`, of an exported file alone, is of its rows.
"""

import hashlib

from sqlalchemy import Column, Connection, MetaData, String, Table, delete, insert, inspect, select

FACTS = Table(
    "mtdlab_facts",
    MetaData(),
    Column("name", String, primary_key=True),
    Column("value", String, nullable=False),
)
IDENTITY, DIGEST = "identity", "digest"


def read_fact(connection: Connection, name: str) -> str:
    """Read a fact; empty where it is not recorded."""
    if not inspect(connection).has_table(FACTS.name):
        return ""
    return connection.scalar(select(FACTS.c.value).where(FACTS.c.name == name)) or ""


def record_fact(connection: Connection, name: str, value: str) -> None:
    """Record a fact in place of an earlier one; an empty one is removed."""
    FACTS.create(connection, checkfirst=True)
    connection.execute(delete(FACTS).where(FACTS.c.name == name))
    if value:
        connection.execute(insert(FACTS).values(name=name, value=value))


def compute_digest(connection: Connection) -> str:
    """Compute the SHA-256 of all rows of mtdlab's tables in a SQLite file, as they are stored."""
    digest = hashlib.sha256()
    for table in sorted(inspect(connection).get_table_names()):
        if table.startswith("mtdlab_") and table != FACTS.name:
            rows = connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY rowid")
            digest.update(f"{table} {[*rows.keys()]}\n".encode())
            for row in rows:
                digest.update(f"{tuple(row)}\n".encode())
    return digest.hexdigest()


def has_its_rows(connection: Connection) -> bool | None:
    """Return whether the rows of an export are those of its digest; None for a file without one."""
    digest = read_fact(connection, DIGEST)
    return digest == compute_digest(connection) if digest else None
