"""Training programs of the user: a function in place of mtdlab's trainer."""

from mtdlab.programs.program import Program, Report, find_program
from mtdlab.programs.settings import ProgramSettings, Scalar

__all__ = ["Program", "ProgramSettings", "Report", "Scalar", "find_program"]
