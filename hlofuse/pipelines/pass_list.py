"""Lists of passes as a user writes them: `fusion, fixpoint(fusion_merger, cse, dce)`."""

from __future__ import annotations

import re

from hlofuse.ir.errors import HlofuseError

FIXPOINT = "fixpoint"
MOST_ROUNDS = 25
"""After so many rounds a fixpoint is given up; passes that undo each other would never end."""

_FIXPOINT = re.compile(rf"\s*{FIXPOINT}\s*\((.*)\)\s*", re.DOTALL)


def split_passes(text: str) -> tuple[str, ...]:
    """The passes of a list, in order; commas within parentheses belong to a pass's options.

    HlofuseError for unbalanced parentheses or an empty list.
    """
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    if depth:
        raise HlofuseError(f"--passes {text}: a parenthesis is missing")
    found = tuple(p.strip() for p in (*parts, text[start:]))
    if not all(found):
        raise HlofuseError(f"--passes {text}: expected pass names separated by commas")
    return found


def repeated(text: str) -> tuple[str, ...] | None:
    """What `fixpoint(…)` repeats until nothing changes any more; None for a single pass."""
    m = _FIXPOINT.fullmatch(text)
    return split_passes(m[1]) if m else None


def single_passes(passes: tuple[str, ...]) -> tuple[str, ...]:
    """Every pass named, those of a fixpoint once."""
    found: list[str] = []
    for text in passes:
        inner = repeated(text)
        found += [text] if inner is None else single_passes(inner)
    return tuple(found)
