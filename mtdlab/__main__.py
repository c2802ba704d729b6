"""The command `mtdlab`, also as `python -m mtdlab`."""

import signal


def main() -> None:
    """Run a command. Ctrl-C while its modules are imported ends it without a traceback."""
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from mtdlab.cli import main as run

    signal.signal(signal.SIGINT, previous)
    run()


if __name__ == "__main__":
    main()
