"""Import of runs made with other programs: CSV or Parquet to a study or to level means."""

from analysis.run_tables.cells import TableError
from analysis.run_tables.study import open_table, read_run_table

__all__ = ["TableError", "open_table", "read_run_table"]
