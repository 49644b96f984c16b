"""Reports at 60, 80, 120 and 200 columns: no line too wide, no figure cut, columns dropped in order."""

import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from hlofuse.format.escape import shorten
from hlofuse.format.terminal import fit_columns, print_rows
from tests.running import Run

WIDTHS = (60, 80, 120, 200)
FIGURE = re.compile(r"(?<![\w.,–-])\d[\d,]*(?:\.\d+)? (?:[kMGT]?B|[µm]?s|FLOP)\b")
COMMANDS = [
    ["explain", "gpu/gpt2_block"],
    ["explain", "gpu/gpt2_block", "--details", "--limit", "3"],
    ["explain", "cartpole/cpu/scan"],
    ["why", "gpu/gpt2_block", "mul.27.0", "tanh.1.0"],
    ["why", "cpu/gpt2_block", "add.9"],
    ["kernels", "gpu/gpt2_block", "--limit", "4"],
    ["stats", "cartpole/cpu/scan", "--limit", "4"],
    ["what-if", "cpu/softmax"],
    ["diff", "cpu/gpt2_block/before.hlo", "cpu/gpt2_block/after.hlo", "--limit", "4"],
    ["check", "cpu", "--max-kernels", "3"],
    ["verify", "cpu"],
    ["targets"],
    ["devices"],
    ["passes"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c[:2]))
def test_no_line_is_too_wide_and_no_figure_is_cut(hlofuse: Run, samples: Path, command: list[str]) -> None:
    given = [str(samples / word) if "/" in word or word == "cpu" else word for word in command]
    figures: dict[int, set[str]] = {}
    for width in WIDTHS:
        out = hlofuse(*given, columns=width).out
        lines = out.splitlines()
        # A command to copy stays on one line.
        assert [x for x in lines if len(x) > width and not x.lstrip().startswith("hlofuse ")] == [], width
        figures[width] = set(FIGURE.findall(" ".join(out.split())))
    for width in WIDTHS[:-1]:
        assert figures[width] <= figures[WIDTHS[-1]], width


COLUMNS = [("kernel", "name"), ("time", "right"), ("bytes", "right"), ("why", "left")]
ROWS = [
    [
        "a_kernel_with_a_rather_long_name ×3, 10,000 times",
        "1.23 µs",
        "45.6 MB",
        "one launch and some traffic less",
    ]
]


def test_columns_go_in_their_order_and_figures_stay_whole() -> None:
    full, least = sum(len(cell) for cell in ROWS[0]) + 6, len(ROWS[0][0]) + 2 + len(ROWS[0][1])
    shown = {width: fit_columns(COLUMNS, ROWS, width, drop=(2, 3))[0] for width in range(least, full + 1)}
    assert shown[full] == [0, 1, 2, 3]
    lengths = [len(columns) for columns in shown.values()]
    assert lengths == sorted(lengths)
    assert {tuple(columns) for columns in shown.values()} == {(0, 1), (0, 1, 3), (0, 1, 2, 3)}
    for width in range(least, full + 1):
        columns, widths, fits = fit_columns(COLUMNS, ROWS, width, drop=(2, 3))
        assert fits
        assert all(widths[n] == len(ROWS[0][n]) for n in columns if COLUMNS[n][1] == "right")
        assert sum(widths.values()) + 2 * (len(columns) - 1) <= width


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (70, ["kernel time bytes", ROWS[0][0] + " 1.23 µs 45.6 MB", ROWS[0][3]]),
        (52, ["kernel", "time bytes", ROWS[0][0], "1.23 µs 45.6 MB", ROWS[0][3]]),
        (30, ["kernel", "time bytes", "a_kernel…name ×3, 10,000 times", "1.23 µs 45.6 MB"]),
    ],
)
def test_without_room_words_then_figures_stand_below_a_name(width: int, shown: list[str]) -> None:
    """The name is whole wherever the screen has room for it alone."""
    console = Console(width=width, record=True, _environ={})
    print_rows(console, COLUMNS, ROWS, drop=())
    lines = console.export_text().splitlines()
    assert [" ".join(line.split()) for line in lines][: len(shown)] == shown
    assert max(map(len, lines)) <= width


def test_a_name_is_shortened_in_the_middle_and_its_counts_are_whole() -> None:
    assert shorten("loop_add_select_fusion ×2, 10,000 times", 28) == "loop_a…sion ×2, 10,000 times"
    assert shorten("loop_add_select_fusion", 12) == "loop_ad…sion"
    assert shorten("short", 12) == "short"
    console = Console(width=60, record=True, _environ={})
    print_rows(console, COLUMNS[:2], [[Text("x" * 80, style="bold"), "1.23 µs"]])
    assert "…" in console.export_text()
