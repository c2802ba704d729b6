"""A study, or several, as one offline page, with figures and tables beside it."""

from mtdlab.analysis.report.level_means import write_level_means
from mtdlab.analysis.report.multi_study import MultiStudyReport, write_multi_study
from mtdlab.analysis.report.writer import Report, write_report

__all__ = ["MultiStudyReport", "Report", "write_level_means", "write_multi_study", "write_report"]
