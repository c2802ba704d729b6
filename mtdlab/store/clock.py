"""The clock of the database, which all machines that write to it share.

SQLite's is that of the machine with its file, PostgreSQL's that of the server.
"""

from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class Now(FunctionElement[float]):
    """Seconds since the epoch while a statement runs, as an expression of SQL."""

    type = Double()
    inherit_cache = True


@compiles(Now, "sqlite")
def _of_sqlite(_element: Now, _compiler: Any, **_options: Any) -> str:
    # unixepoch() with fractions needs SQLite 3.42; the epoch is the Julian day 2440587.5
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(Now, "postgresql")
def _of_postgresql(_element: Now, _compiler: Any, **_options: Any) -> str:
    # not now(), which is the time at which the transaction began
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
