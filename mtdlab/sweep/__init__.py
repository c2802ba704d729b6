"""The study: open, claim, run, tell, resume."""
