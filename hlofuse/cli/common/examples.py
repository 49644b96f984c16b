"""Examples at the end of each command's `--help`."""

from hlofuse.ir import packaged

EXAMPLES: dict[str, list[str]] = packaged(__file__, "examples")


def epilog(command: str) -> str:
    """The examples as click prints them: one a line, not wrapped."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES.get(command, ()))])
