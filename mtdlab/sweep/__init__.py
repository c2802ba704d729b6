"""Sweeps: open a study, claim its trials, run and record them, resume."""
