"""The command line: a file for each command, which `main.py` imports when that command is called.

What is imported in a few milliseconds stands at the top of these files. Replays, reports, drawings and rich
take a tenth of a second and more, so the functions that need them import them: `--help` and a wrong option do
without.
"""
