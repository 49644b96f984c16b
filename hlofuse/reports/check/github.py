"""Workflow commands: annotations on the lines of the user's program in a pull request."""

from pathlib import Path

from hlofuse.format.escape import printable
from hlofuse.format.paths import is_file
from hlofuse.reports.check.model import TITLES, Check, Finding, Level
from hlofuse.reports.check.phrases import at, one_line, verdict

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def check_github(check: Check, root: Path) -> str:
    """One command for each finding, errors first: GitHub shows the first ten of a step."""
    ordered = sorted(check.findings, key=lambda f: list(Level).index(f.level))
    return "".join(f"{_command(f, root)}\n" for f in ordered) + f"hlofuse check: {verdict(check)}\n"


def _command(f: Finding, root: Path) -> str:
    properties = {}
    message = one_line(f)
    if is_file(root, f.where.file):
        properties["file"] = f.where.file
        if f.where.line:
            properties["line"] = str(f.where.line)
    elif f.where.file:
        # A file that is not in the repository: GitHub would drop the place, so it is said in words.
        message = f"{at(f.where)}: {message}"
    properties["title"] = f"hlofuse: {TITLES[f.code]}"
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[f.level]} {listed}::{_message(message)}"


def _message(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
