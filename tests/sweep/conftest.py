"""The database of a test, and studies of short trials on the tiny encoder."""

from tests.tiny_studies import closed_studies, store, tiny_study, url

__all__ = ["closed_studies", "store", "tiny_study", "url"]
