"""One trial in one process: claimed, run, recorded, and what is kept of it."""
