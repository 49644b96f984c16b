"""The way in: `hlofuse` alone or with an input, examples in the help, and what was written."""

import re
import shlex
from pathlib import Path

import pytest

from hlofuse.cli.common.examples import EXAMPLES
from hlofuse.cli.main import _COMMANDS
from tests.running import Golden, Run

PLACEHOLDERS = {
    "DIR": "cpu/softmax",
    "BEFORE": "cpu/softmax/before.hlo",
    "AFTER": "cpu/softmax/after.hlo",
    "model.py:42": "programs.py:89",
    "src": "cpu/softmax",
    "add.9": "divide",
    "bitcast_add_fusion": "broadcast_multiply_fusion",
}
NOT_RUN = (
    "batch",
    "calibrate",
    "capture",
    "fix",
    "optimize",
    "upgrade",
    "timeline",
    "trace-op",
    "judge",
    "run-as",
    "render",
    "plot",
    "--without-pass",
    "model-error",
)
"""They take another Python, minutes, Graphviz, a profile, a whole dump directory or many."""

RUN = [line for lines in EXAMPLES.values() for line in lines if not set(NOT_RUN) & set(line.split())]


def test_every_command_has_one_to_three_examples(hlofuse: Run, golden: Golden) -> None:
    """The golden has each line of the help once, in the order of the commands."""
    assert set(EXAMPLES) == set(_COMMANDS)
    texts = {command: hlofuse(command, "--help").out for command in EXAMPLES}
    for command, lines in EXAMPLES.items():
        assert 1 <= len(lines) <= 3
        assert all(line in texts[command] for line in lines), command
    every = re.sub(r"(?<=Usage: ).*?hlofuse", "hlofuse", "\n".join(texts.values())).splitlines()
    golden("cli/help.txt", "\n".join(dict.fromkeys(every)))


@pytest.mark.parametrize("line", RUN)
def test_examples_run(
    hlofuse: Run, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fusion.toml").write_text("version = 1\n") if "github" in line else None
    arguments = [PLACEHOLDERS.get(argument, argument) for argument in shlex.split(line)[1:]]
    arguments = [str(samples / word) if "/" in word else word for word in arguments]
    result = hlofuse(*arguments)
    assert result.status == (1 if "diff" in arguments else 0), result.err


def test_alone_it_lists_what_is_there(
    hlofuse: Run, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nothing = hlofuse()
    assert nothing.status == 0
    assert nothing.out.startswith("No HLO dump here.")
    assert "XLA_FLAGS=--xla_dump_to=dump" in nothing.out
    monkeypatch.chdir(samples)
    found = hlofuse().out
    assert found.startswith("HLO dumps in:\n  cpu\n  gpu\n  cartpole/cpu\n")
    assert "  tutorial/slow\ncpu: 2 captured modules\n" in found
    assert "  hlofuse explain cpu/gpt2_block " in found


OF_TPU = "HloModule g, is_scheduled=true\n\nENTRY e {\n  ROOT p = f32[64]{0:T(64)} parameter(0)\n}\n"


@pytest.mark.parametrize("given", ["cpu", "cpu/softmax", "gpu/softmax/after.hlo", "tpu", "tpu/g.hlo"])
def test_what_it_lists_can_be_run(hlofuse: Run, samples: Path, tmp_path: Path, given: str) -> None:
    (tmp_path / "tpu").mkdir()
    for name in ("g.hlo", "module_0001.g.after_optimizations.txt"):
        (tmp_path / "tpu" / name).write_text(OF_TPU)
    found = hlofuse(str((tmp_path if given.startswith("tpu") else samples) / given))
    assert (found.status, found.err) == (0, "")
    lines = found.out.splitlines()
    assert len(lines) <= 24
    commands = [x.strip().split("  ")[0] for x in lines[lines.index("Next:") + 1 :]]
    assert len(commands) >= 3
    for command in commands:
        arguments = shlex.split(command)[1:]
        if "-o" not in arguments and "NAME" not in arguments and "check" not in arguments:
            assert hlofuse(*arguments).status == 0, command


def test_a_dump_directory_is_listed(hlofuse: Run, deviceless: Path, samples: Path, tmp_path: Path) -> None:
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_bytes(deviceless.read_bytes())
    found = hlofuse(tmp_path).out
    assert found.startswith(f"{tmp_path}: dump directory with 1 module\n  module_0001.jit_f  ")
    assert f"hlofuse explain {tmp_path} " in found
    name = "module_0001.jit_f.0000.HLO_passes_after_layout_assignment.after_cse.before_fusion.txt"
    (tmp_path / name).write_bytes((samples / "cpu/softmax/before.hlo").read_bytes())
    for command in ((), ("explain",)):  # both read what enters fusion
        assert "jit_softmax: fusion input" in hlofuse(*command, tmp_path).out


def test_what_was_written_is_said(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    module, page = tmp_path / "out.hlo", tmp_path / "page.html"
    written = hlofuse("replay", samples / "cpu/softmax", "-o", module).err.splitlines()[-1]
    assert written == f"wrote {module} (4.52 kB): read it with hlofuse stats"
    written = hlofuse("explore", samples / "cpu/softmax", "-o", page).err.splitlines()[-1]
    assert written.startswith(f"wrote {page} (")
    assert written.endswith("): open it in a browser")
