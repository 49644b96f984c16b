"""A bar chart: for each program, one bar a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_COLORS = ("#d97706", "#2563eb", "#64748b")
_LEFT, _BAR, _GAP, _WIDTH, _TOP = 150, 13, 12, 720, 52
_MOST = 30
"""Kernels at the right edge; longer bars are cut, and say so."""


def chart(bars: Mapping[str, Mapping[str, float]], series: Sequence[str]) -> str:
    """SVG with the value written at the end of each bar."""
    row = len(series) * _BAR + _GAP
    height = _TOP + len(bars) * row + 6
    scale = (_WIDTH - _LEFT - 60) / _MOST
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img"'
    title = "Kernels launched in a step, after fusion"
    out = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="20" font-weight="600" fill="#0f172a">{title}</text>',
    ]
    x = _LEFT
    for name, color in zip(series, _COLORS, strict=True):
        out.append(f'<rect x="{x}" y="31" width="10" height="10" fill="{color}"/>')
        out.append(f'<text x="{x + 15}" y="40" fill="#334155">{escape(name)}</text>')
        x += 110
    for number, (program, values) in enumerate(bars.items()):
        top = _TOP + number * row
        middle = top + len(series) * _BAR / 2 + 4
        out.append(
            f'<text x="{_LEFT - 10}" y="{middle:g}" text-anchor="end" fill="#0f172a">{escape(program)}</text>'
        )
        for place, name in enumerate(series):
            if name not in values:
                continue
            y, value = top + place * _BAR, values[name]
            width = max(1.0, min(value, _MOST) * scale)
            text = f"{value:g}" + (" (bar cut)" if value > _MOST else "")
            if value > _MOST:
                width -= 30
            out.append(
                f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR - 2}" fill="{_COLORS[place]}"/>'
            )
            out.append(
                f'<text x="{_LEFT + width + 5:.1f}" y="{y + 10}" font-size="11" fill="#334155">{text}</text>'
            )
    return "\n".join([*out, "</svg>", ""])
