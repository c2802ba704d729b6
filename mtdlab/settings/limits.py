"""Limits of what is read from study files and command lines, in one place.

They lie far above sensible studies. What exceeds one is refused in a sentence before anything of
that size is built in memory.
"""

FILE_BYTES = 50_000
"""The size of a study file, in bytes."""
NESTED = 20
"""Levels of lists and mappings in each other."""
MISTAKES = 50
"""Mistakes of a study file that are reported at once."""
PROFILES = 20
"""Profiles of a study file."""
POINTS = 10_000
"""Points of a grid, before some are left out; values along one of its settings."""
TRIALS = 100_000
"""Trials of a study: configurations times seeds."""
STEPS = 10_000_000
"""Training steps of a run: every step's loss is recorded."""
COUNT = 100_000_000
"""Keys, sentences, tokens and dimensions."""
LAYERS = 100
"""Layers of a head."""

_MEANING = {
    "size of a study file": f"{FILE_BYTES:,} bytes",
    "lists and mappings in each other": f"{NESTED} levels",
    "mistakes that are reported at once": f"{MISTAKES}",
    "profiles of a study file": f"{PROFILES}",
    "points of a grid, and values of one setting in it": f"{POINTS:,}",
    "trials of a study: configurations × seeds": f"{TRIALS:,}",
    "`steps`": f"{STEPS:,}",
    "sizes in sentences, keys, tokens or dimensions": f"{COUNT:,}",
    "layers of a head": f"{LAYERS}",
}


def limits_markdown() -> str:
    """The limits as a table of the reference."""
    rows = [f"| {what} | {most} |" for what, most in _MEANING.items()]
    return "\n".join(["| what | at most |", "|---|---|", *rows])
