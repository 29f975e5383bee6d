"""`python -m ropewalk`: the same as `ropewalk`."""

from ropewalk.cli.main import main

main()
