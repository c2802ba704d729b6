"""The tasks of the published tables, by name and in their order."""

STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSB", "SICKR")
"""Semantic similarity: Spearman's correlation."""
TRANSFER = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
"""Classification on frozen sentence vectors: accuracy."""
TASKS = (*STS, *TRANSFER)
