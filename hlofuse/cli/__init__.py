"""The command line: a file for each command, which `main.py` imports when that command is called.

At the top of these files stands what is imported in a few milliseconds. Replays, reports, drawings and rich take
a tenth of a second and more, so they are imported inside the functions that run: `--help` and a wrong option do
without them.
"""
