"""How wide a text is, without asking a font: Helvetica's own widths.

Graphviz inflates every shape that is no box to fit the text into its inner circle; sizing them here
keeps trapezia and hexagons as small as their text allows, and the same wherever they are drawn.
"""

from __future__ import annotations

import unicodedata

# Thousandths of the font size for the characters from space to tilde.
# fmt: off
_WIDTHS = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778,
    722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278,
    278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)
# fmt: on
_BOLD = 1.07


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The width in points."""
    units = 0
    for c in text:
        if " " <= c <= "~":
            units += _WIDTHS[ord(c) - 32]
        else:
            units += 1000 if unicodedata.east_asian_width(c) in "WF" else 600
    return units * size / 1000 * (_BOLD if bold else 1.0)
