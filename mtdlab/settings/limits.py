"""Limits of what is read from study files and command lines, in one place.

They lie far above sensible studies. What exceeds one is refused in a sentence before anything of
that size is built in memory.
"""

FILE_BYTES = 50_000
NESTED = 20
MISTAKES = 50
PROFILES = 20
POINTS = 10_000
TRIALS = 100_000
STEPS = 10_000_000
COUNT = 100_000_000
LAYERS = 100

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
