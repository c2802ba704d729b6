"""Fixtures of the tests of sweeps."""

from tests.sweep.two_trials import store

__all__ = ["store"]
