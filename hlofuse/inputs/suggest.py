"""Suggestions for a mistyped name."""

import re
from collections.abc import Iterable, Sequence

from hlofuse.format import printable
from hlofuse.ir.errors import any_of

_ZEROS = r"(?<!\d)0+(?=\d)"
_MOST_NAMES = 20_000  # difflib takes its time; more names than this are thinned by their first letters


def close_matches(name: str, names: Iterable[str]) -> list[str]:
    """The three names most like `name`, best first."""
    import difflib  # only what went wrong needs it

    pool = list(dict.fromkeys(names))
    if len(pool) > _MOST_NAMES:
        pool = [n for n in pool if n[:2] == name[:2]][:_MOST_NAMES]
    lowered = name.lower()
    bare = re.sub(_ZEROS, "", lowered)
    # A name without its number, or the zeros of it, is meant literally: reduce -> reduce.3, PF2 -> PF002.
    literal = [n for n in pool if f"{re.sub(_ZEROS, '', n.lower())}.".startswith(f"{bare}.")]
    close = difflib.get_close_matches(name, pool)
    inside = [n for n in pool if len(lowered) > 2 and lowered in n.lower()]
    return list(dict.fromkeys([*literal, *close, *inside]))[:3]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`; did you mean a, b or c?`, or empty."""
    return names_meant(close_matches(name, names))


def names_meant(found: Sequence[str]) -> str:
    """`; did you mean` these names?, or empty without names."""
    if not found:
        return ""
    return f"; did you mean {any_of([printable(f) for f in found])}?"
