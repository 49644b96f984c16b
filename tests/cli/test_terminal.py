"""Colours, pipes, files, exit statuses: how the command line behaves whatever the command."""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from hlofuse.cli.common import messages
from hlofuse.cli.common.output import write_file
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.options import Listener, ReplayOptions
from hlofuse.library.questions import Explain
from hlofuse.library.report import Report
from ..conftest import ROOT
from ..running import Golden, Run

SOFTMAX = ROOT / "samples" / "cpu" / "softmax" / "before.hlo"
COMMANDS = (["explain"], ["why", "divide"], ["stats"])


@pytest.mark.parametrize(
    ("arguments", "heavy", "attributes"),
    [
        (["--help"], ("rich", "lark", "numpy", "graphviz", "hlofuse.ir"), "explain"),
        (
            ["stats", str(SOFTMAX)],
            ("lark", "numpy", "hlofuse.cost.gpu", "hlofuse.reports.explain.explain"),
            "FLOP",
        ),
    ],
)
def test_nothing_heavy_is_imported(arguments: list[str], heavy: tuple[str, ...], attributes: str) -> None:
    code = (
        f"import sys\nfrom hlofuse.cli.main import main\nsys.argv = ['hlofuse', *{arguments}]\n"
        f"try:\n    main()\nexcept SystemExit: pass\nprint([m for m in {heavy} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.rstrip().endswith("[]")
    assert attributes in out


@pytest.mark.parametrize("command", ["explain", "why", "verify", "stats"])
def test_help_of_each_command(hlofuse: Run, command: str) -> None:
    result = hlofuse(command, "--help")
    assert (result.status, result.err) == (0, "")
    assert "--format" in result.out


def test_mistyped_commands_get_suggestions(hlofuse: Run, samples: Path) -> None:
    result = hlofuse("explian")
    assert result.status == 2
    assert "did you mean explain" in result.err
    dump = str(samples / "cpu/softmax")
    for call, meant in (
        (["explain", "fusion", dump, "--details"], f"INPUT comes first: hlofuse explain {dump} fusion\n"),
        (["memory", dump, dump], f"for two inputs, hlofuse diff {dump} {dump}\n"),
        (["--device", "h100_sxm", "explain", dump], "hlofuse COMMAND … --device\n"),
        ([dump, "explain"], "the command comes first: hlofuse explain INPUT"),
        (["rule", "PF2"], "did you mean PF002"),
    ):
        assert meant in hlofuse(*call).err


@pytest.mark.parametrize("command", COMMANDS)
def test_color(hlofuse: Run, samples: Path, command: list[str]) -> None:
    args = [command[0], samples / "cpu" / "softmax" / "before.hlo", *command[1:]]
    assert "\x1b[" not in hlofuse(*args).out  # a pipe
    assert "\x1b[" in hlofuse(*args, "--color", "always").out
    assert "\x1b[" in hlofuse(*args, "--color", "always", NO_COLOR="1").out  # said in so many words
    assert "\x1b[" not in hlofuse(*args, "--color", "never").out


@pytest.mark.parametrize("command", COMMANDS)
def test_color_changes_nothing_but_colors(hlofuse: Run, samples: Path, command: list[str]) -> None:
    args = [command[0], samples / "cpu" / "softmax" / "before.hlo", *command[1:]]
    plain = hlofuse(*args).out
    colored = hlofuse(*args, "--color", "always").out
    text = re.sub(r"\x1b\[[\d;]*m", "", colored)
    assert [line.rstrip() for line in text.split("\n")] == plain.split("\n")


STYLED = [
    "explain gpu/gpt2_block --device h100_sxm --details",
    "why cpu/gpt2_block add.9 bitcast_add_fusion",
    "why cpu/gpt2_block mul.29 bitcast.9",
    "why cpu/gpt2_block add.9 --details",
    "what-if cpu/gpt2_block",
    "what-if gpu/softmax --device h100_sxm --sweep launch_overhead_us=1,4",
    "diff cpu/softmax cpu/gpt2_block",
    "memory tutorial/slow/loss",
]


def test_what_is_bold_or_green(
    hlofuse: Run, golden: Golden, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first words in each style, without their numbers."""
    monkeypatch.chdir(samples)
    text = ""
    for command in STYLED:
        out = hlofuse(*command.split(), "--color", "always", columns=100).out
        parts = re.findall(r"\x1b\[([\d;]*[1-9])m *([^\x1b\n]*[A-Za-z]{3}[^\x1b\n]*)", out)
        texts = dict.fromkeys((style, re.sub(r"[\d.,]+", "0", part)[:24].rstrip()) for style, part in parts)
        text += "".join([f"── {command}\n", *(f"{style} {part}\n" for style, part in texts)])
    golden("cli/styles.txt", text)


def test_no_color_on_a_terminal_that_does_not_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from hlofuse.cli.common import output

    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert output._wants_color()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output._wants_color()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not output._wants_color()


def test_standard_input(hlofuse: Run, samples: Path) -> None:
    data = (samples / "cpu" / "softmax" / "before.hlo").read_bytes()
    plain = hlofuse("explain", "-", stdin=data)
    assert plain.status == 0
    assert hlofuse("explain", "-", stdin=gzip.compress(data)).out == plain.out
    assert "hlofuse why - divide" in hlofuse("explain", "-", "--details", stdin=data).out


def test_reports_into_files(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    source = samples / "cpu" / "softmax" / "before.hlo"
    for form in ("text", "json", "markdown"):
        target = tmp_path / form
        result = hlofuse("explain", source, "--format", form, "-o", target)
        assert (result.status, result.out) == (0, "")
        assert target.read_text() == hlofuse("explain", source, "--format", form).out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["json", "markdown", "text"]
    result = hlofuse("explain", source, "-o", tmp_path / "no" / "where")
    assert result.status == 2
    assert "cannot write" in result.err


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    path = tmp_path / "report"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(HlofuseError, match="No space left on device"):
        write_file(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["report"]
    assert path.read_text() == "old"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Also because /dev/stdout is one, and must not be replaced by a file."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write_file(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "made")
    write_file(dangling, "new")
    assert (tmp_path / "made").read_text() == "new"


BUFFERED = pytest.mark.parametrize("unbuffered", ["", "1"])
"""PYTHONUNBUFFERED: whether a write fails at once or when Python ends."""


@BUFFERED
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_said_in_words(samples: Path, unbuffered: str) -> None:
    source = str(samples / "cpu" / "softmax" / "before.hlo")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hlofuse", "explain", source],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 2
    assert done.stderr == "error: cannot access the output: No space left on device\n"


@BUFFERED
def test_a_reader_that_leaves_early_is_no_error(samples: Path, unbuffered: str) -> None:
    source = samples / "cpu" / "gpt2_block" / "before.hlo"
    command = f"{sys.executable} -m hlofuse explain {source} --format json"
    script = f"{command} | head -1; echo ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == ""
    assert done.stdout.split("\n")[:2] == ["{", "0"]


def test_an_ascii_terminal_gets_question_marks_instead_of_a_traceback(samples: Path) -> None:
    source = str(samples / "cpu" / "softmax" / "before.hlo")
    done = subprocess.run(
        [sys.executable, "-m", "hlofuse", "explain", "--details", source],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        check=True,
    )
    assert b"6 kernels ? 4" in done.stdout


BAD_INPUTS = {
    "empty.hlo": b"",
    "garbage.hlo": b"\x00\x01\x02\x03" * 100,
    "prose.txt": b"Dear all,\nplease find attached.\n",
    "latin.hlo": b"HloModule m\xe9\n",
    "cut.gz": gzip.compress(b"HloModule m\n" * 100)[:-9],
    "nested.hlo": b"HloModule m\n\nENTRY %main () -> f32[] {\n  ROOT %t = " + b"(" * 10_000 + b"\n}\n",
}


@pytest.mark.parametrize("name", BAD_INPUTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_is_a_clear_error(hlofuse: Run, tmp_path: Path, name: str, command: list[str]) -> None:
    path = tmp_path / name
    path.write_bytes(BAD_INPUTS[name])
    result = hlofuse(command[0], path, *command[1:])
    assert (result.status, result.out) == (2, "")
    assert name in result.err
    assert "Traceback" not in result.err
    assert "internal error" not in result.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cut_module_is_a_part_without_figures_or_a_clear_error(
    hlofuse: Run, tmp_path: Path, command: list[str]
) -> None:
    path = tmp_path / "cut.hlo"
    path.write_bytes(b"HloModule m\n\nENTRY %main (p: f32[2]) -> f32[2] {\n  %p = f32[2]{0} param")
    result = hlofuse(command[0], path, *command[1:])
    if command[0] in ("explain", "kernels", "why", "stats", "what-if"):
        assert result.status == 0
        assert "m: 1 computation of a module" in result.out
        assert "Kernels, time and bytes are known of a whole module only." in result.out
    else:
        assert (result.status, result.out) == (2, "")
        assert "cut.hlo" in result.err


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_files_and_folders(hlofuse: Run, tmp_path: Path, command: list[str]) -> None:
    for path, text in ((tmp_path / "no.hlo", "does not exist"), (tmp_path, "no module dumps")):
        result = hlofuse(command[0], path, *command[1:])
        assert result.status == 2
        assert text in result.err


def test_an_internal_error_is_one_message(
    hlofuse: Run, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("hlofuse.reports.verdict.verdict.verdict", broken)
    result = hlofuse("explain", samples / "cpu" / "softmax")
    assert result.status == 2
    assert result.err.startswith("error: internal error: KeyError: 'oops'\nThis is a bug in hlofuse")


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("it moved 12.5 MB", 12, ["it moved", "12.5 MB"]),
        ("est. 585.7 µs → 99.78 µs", 20, ["est. 585.7 µs →", "99.78 µs"]),
        ("flops est. 585.7 µs", 16, ["flops", "est. 585.7 µs"]),
        ("tanh, constant ×10", 15, ["tanh,", "constant ×10"]),
        ("then −75 shift-left", 16, ["then", "−75 shift-left"]),
        ("add 12, subtract 4", 14, ["add 12,", "subtract 4"]),
        ("or 1, sine 1,024, while 1", 16, ["or 1,", "sine 1,024,", "while 1"]),
        ("or 1, sine 1,024, while 1", 24, ["or 1, sine 1,024,", "while 1"]),
        ("loop, 64 × 128 threads", 12, ["loop,", "64 × 128", "threads"]),
        ("12.5 MB", 5, ["12.5", "MB"]),
    ],
)
def test_a_number_stays_with_its_unit(text: str, width: int, lines: list[str]) -> None:
    from hlofuse.format.terminal import NO_BREAK, UnbrokenConsole

    console = UnbrokenConsole(width=width, highlight=False, force_terminal=False, _environ={})
    with console.capture() as printed:
        console.print(text)
    assert [line.rstrip() for line in printed.get().replace(NO_BREAK, " ").splitlines()] == lines


def test_what_others_call_an_option_of_its_own_gets_the_option(hlofuse: Run) -> None:
    result = hlofuse("explain", "x.hlo", "--json")
    assert result.status == 2
    assert "no such option --json" in result.err
    assert "--format json" in result.err


def test_a_missing_device_is_asked_for_with_an_example(hlofuse: Run, deviceless: Path) -> None:
    result = hlofuse("explain", deviceless)
    assert result.status == 2
    example = result.err.split("such as ")[1].split(" (")[0].split()
    assert hlofuse("explain", deviceless, *example).status == 0


def test_of_a_knob_like_no_other_the_list_is_named(hlofuse: Run, samples: Path) -> None:
    requested = ("explain", samples / "cpu/softmax", "--set")
    assert "did you mean" in hlofuse(*requested, "code-duplicaton-limit=3").err
    error = "error: no knob 'zzz'; hlofuse what-if --knobs lists them, those of a device for GPUs only\n"
    assert hlofuse(*requested, "zzz=3").err == error


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _interrupt_after(terminal: _Terminal, shown: str) -> None:
    deadline = time.monotonic() + 30
    while shown not in terminal.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    raise KeyboardInterrupt


def test_a_pipe_has_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(messages, "_EVERY", 0.05)
    with messages.progress_bar("replaying") as progress:
        progress(3, 1200)
        time.sleep(0.2)
    assert capsys.readouterr().err.startswith("replaying: 3 of 1,200, 0 s\nreplaying")


def test_figures_stand_while_changes_are_tried_and_stay_when_stopped(
    monkeypatch: pytest.MonkeyPatch, samples: Path
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := _Terminal())
    softmax = samples / "cpu" / "softmax" / "before.hlo"
    shown = list[str]()

    @contextmanager
    def activity(what: str, draw: Callable[[Console], None] | None = None) -> Iterator[None]:
        if draw is None:
            yield
            return
        with pytest.raises(KeyboardInterrupt), messages.spinner(what, draw, after=0):
            _interrupt_after(terminal, what)
        shown.append(re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue()))
        yield

    options = ReplayOptions(str(softmax), target="cpu", listener=Listener(activity=activity))
    Explain().about(Report(options))
    final = shown[0].rpartition("jit_softmax: ")[2]
    assert "kernels" in final.splitlines()[1]
    assert "Slowest kernels" in final
    assert "Suggestions" not in final
    assert "tried" not in final
    assert final.rstrip().endswith("Stopped trying changes.")
