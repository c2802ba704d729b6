"""The tests of the store run on both kinds of database."""

from tests.postgresql import url

__all__ = ["url"]
