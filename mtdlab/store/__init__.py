"""This package is the study database, mtdlab's tables in an Optuna database; all SQL is in it."""
