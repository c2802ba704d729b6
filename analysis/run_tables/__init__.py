"""Runs made elsewhere, read from a CSV or Parquet file as a study or as level means."""

from analysis.run_tables.cells import TableError
from analysis.run_tables.study import open_table, read_run_table

__all__ = ["TableError", "open_table", "read_run_table"]
