"""Quantities with three figures and a decimal prefix."""

from collections.abc import Sequence

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def quantity(value: float, unit: str = "") -> str:
    """`1_234_567, "B"` → `1.23 MB`; below a thousand the number itself."""
    sign = "−" if value < 0 else ""
    value = abs(value)
    step = 0
    while value >= 999.5 and step < len(_PREFIXES) - 1:
        value /= 1000
        step += 1
    if step == 0:
        digits = f"{value:.0f}" if value == int(value) else f"{value:.3g}"
    else:
        digits = f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
    unit_text = f"{_PREFIXES[step]}{unit}"
    return f"{sign}{digits} {unit_text}" if unit_text else f"{sign}{digits}"


def bytes_text(value: float, at_least: int = False) -> str:
    """Bytes, decimal: `8.39 MB`; `≥ ` before a lower bound."""
    return f"{'≥ ' if at_least else ''}{quantity(value, 'B')}"


def memory_text(size: int) -> str:
    """Memory of hardware: `84.9 GB (79.1 GiB)`."""
    return f"{bytes_text(size)} ({size / 2**30:.3g} GiB)" if size >= 2**30 else bytes_text(size)


_SMALLEST_US = 0.005  # below this a time of two decimals would read as nothing


def us_text(value: float, at_least: bool = False) -> str:
    """A number of microseconds as `12.34 µs`, `5.50 ms` or `1.25 s`; `≥ ` before a lower bound."""
    size = abs(value)
    if size < _SMALLEST_US:
        return "0 µs" if not value else "> 0 µs" if at_least else "<0.01 µs"
    unit = "µs"
    for larger in ("ms", "s"):
        if size >= 999.5:
            size, unit = size / 1000, larger
    whole = 999.5 if unit == "µs" else 99.95
    text = (
        f"{'−' if value < 0 else ''}{size:,.{2 if size < whole / 10.0 else 1 if size < whole else 0}f} {unit}"
    )
    return f"≥ {text}" if at_least else text


def change_percent(old: float, new: float) -> str:
    """`−22%`: whole from ten on, two digits below and of almost all (`−99.96%`); `±0%` below 0.005%."""
    if not old:
        return "±0%" if not new else "+∞%"
    change = 100 * abs(new - old) / old
    if change < 0.005:
        return "±0%"
    digits = f"{change:,.0f}" if change >= 9.95 else f"{change:.2g}"
    if digits == "100" and change < 100:
        digits = f"{min(change, 99.99):.4g}"
    return f"{'−' if new < old else '+'}{digits}%"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 edge`, `1,234 edges`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def broken(line: str, width: int) -> list[str]:
    """The line; the parts between ` · ` without room go on below, two columns in."""
    first, *parts = line.split(" · ")
    lines, below = [first], " " * (len(line) - len(line.lstrip()) + 2)
    for part in parts:
        if len(lines[-1]) + 3 + len(part) > width:
            lines.append(below + part)
        else:
            lines[-1] += f" · {part}"
    return lines


def undivided(devices: int) -> str:
    """` before division over 8 devices`, after figures of a program that is; empty for one device."""
    return f" before division over {devices:,} devices" if devices > 1 else ""


def ranges(numbers: list[int]) -> str:
    """Ascending numbers with runs joined: `1–4, 9`."""
    parts = []
    start = previous = None
    for n in [*numbers, None]:
        if previous is not None and n == previous + 1:
            previous = n
            continue
        if start is not None:
            parts.append(str(start) if start == previous else f"{start}–{previous}")
        start = previous = n
    return ", ".join(parts)


def more(left: int) -> str:
    """The last line of a truncated list."""
    return f"… {left:,} more (--limit 0 shows all)"


def enumeration(names: Sequence[str]) -> str:
    """`matmuls, sorts and loops`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def listing(names: Sequence[str], most: int) -> str:
    """The first of some names, and the number of others: `a, b, … 4 more`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f", … {rest:,} more" if rest > 0 else "")


def times(text: str, count: int) -> str:
    """`reduce ×3`; the text alone for one."""
    return f"{text} ×{count}" if count > 1 else str(text)


def signed(number: int) -> str:
    """`−3`, `+1,800`, `±0`."""
    return f"{'−' if number < 0 else '+'}{abs(number):,}" if number else "±0"
