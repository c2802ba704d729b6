"""What the commands do, as functions: `mtdlab.run_study`, `plan`, `train`, `report`.

They return what the commands print, print nothing but progress on a terminal, and raise
`MtdlabError` for a mistake in what they are given. `mtdlab` imports them when they are first used.
"""
