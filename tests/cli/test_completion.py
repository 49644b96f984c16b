"""What the shell offers at the Tab key."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from hlofuse.cli.main import group


def offered(*line: str) -> list[str]:
    """The words offered for the last one."""
    shell = ShellComplete(group, {}, "hlofuse", "_HLOFUSE_COMPLETE")
    return [item.value for item in shell.get_completions(list(line[:-1]), line[-1])]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["explain", "x", "--device", "h1"], "h100_sxm"),
        (["explain", "x", "--target", "gpu"], "gpu-legacy"),
        (["explain", "x", "--set", "core"], "core_count="),
        (["explain", "x", "--disable", "pf00"], "PF002"),
        (["explain", "x", "--pass", "priority"], "priority-fusion"),
        (["explain", "x", "--passes", "cse,priority"], "cse,priority-fusion"),
        (["rule", "CPU01"], "CPU012"),
        (["devices", "a100"], "a100_sxm_80"),
    ],
)
def test_options(line: list[str], expected: str) -> None:
    assert expected in offered(*line)


def test_names_of_a_small_input(samples: Path, gpt2_whole: Path) -> None:
    softmax = str(samples / "cpu" / "softmax")
    assert offered("why", softmax, "exp")
    assert offered("why", softmax, "exp", "%red")[0].startswith("%red")
    assert "loop_add_fusion" in offered("why", str(gpt2_whole), "loop_")
    assert "jit_gpt2_block" in offered("explain", str(gpt2_whole), "--module", "j")
    assert offered("why", "/nowhere", "x") == []
