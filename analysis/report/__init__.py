"""A study, or several together, as one offline page, with figures and tables beside it."""

from analysis.report.together import TogetherReport, write_together
from analysis.report.writer import Report, write_report

__all__ = ["Report", "TogetherReport", "write_report", "write_together"]
