"""`python -m hlofuse`: the command line."""

from hlofuse.cli.main import main

main()
