"""`python -m mtdlab`: the same as the command `mtdlab`."""

from mtdlab.cli import main

main()
