"""The command `mtdlab`, also as `python -m mtdlab`."""

import atexit
import gc
import signal

from mtdlab.terminal import open_streams

_ALLOCATIONS = 50_000
"""The number of objects at which the collector looks for cycles. With Python's 700 it looks through
all that the imported libraries allocate again and again: a seventh of the time of `report`."""


def main() -> None:
    """Run a command. Ctrl-C while its modules are imported ends it without a traceback."""
    open_streams()
    gc.set_threshold(_ALLOCATIONS, 20, 20)
    # The interpreter ends with a search of all objects for cycles: a quarter of the time of `show`.
    atexit.register(gc.freeze)
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mtdlab.cli import main as run

    signal.signal(signal.SIGINT, previous)
    try:
        run()
    except SystemExit as ended:
        from mtdlab.user_code import exit_code_of, limit_threads

        limit_threads(exit_code_of(ended))
        raise


if __name__ == "__main__":
    main()
