"""Examples at the end of each command's `--help`."""

import tomllib
from pathlib import Path

EXAMPLES: dict[str, list[str]] = tomllib.loads(
    Path(__file__).with_name("examples.toml").read_text(encoding="utf-8")
)


def epilog(command: str) -> str:
    """The examples as click prints them: one a line, not wrapped."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES.get(command, ()))])
