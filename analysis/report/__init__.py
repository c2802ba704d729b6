"""A study as one offline page, with its figures and tables as files beside it."""

from analysis.report.writer import Report, write_report

__all__ = ["Report", "write_report"]
