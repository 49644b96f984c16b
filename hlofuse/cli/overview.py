"""`hlofuse`, `hlofuse INPUT`: what is there, and the commands to copy next."""

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hlofuse.format import bytes_text, command_line, plural, printable
from hlofuse.inputs import choose_target, load
from hlofuse.inputs import dump_directory as dumps
from hlofuse.inputs.companions import Companions
from hlofuse.inputs.identity import identify_file
from hlofuse.inputs.profile import is_profile, read_profile, slowest_module
from hlofuse.ir import HlofuseError, Strings
from hlofuse.library.heads import head_of_dump
from hlofuse.reports.common.head import Head, fitted, head_lines
from .common.output import emit, rendered

if TYPE_CHECKING:
    from rich.console import Console

_LISTED = 8
_QUICKLY_READ_BYTES = 2_000_000  # bytes of a module that is read in no time
_REPLAYED = ("what-if",)  # it needs a module before fusion
_NOT_OF_TPU = (*_REPLAYED, "verify")  # they need passes, which are not public for TPU
_NO_DUMP = """\
No HLO dump here. Get one from a program:
  XLA_FLAGS=--xla_dump_to=dump python train.py        any program that uses XLA
  hlofuse capture train.py:step --args "f32[8,128]"   a JAX function; needs no GPU
Then:
  hlofuse explain dump                                kernels, time, suggestions
  hlofuse explore dump -o page.html                   every decision in a browser
All commands: hlofuse --help"""


@click.command("overview", hidden=True)
@click.argument("path", type=click.Path())
def command(path: str) -> int:
    """List what is at PATH, and the commands to copy next."""
    lines = list(_lines(path))

    def draw(console: "Console") -> None:
        for line in lines:
            for part in fitted(line, console.width):
                console.print(part, soft_wrap=True)  # a path or command is not broken

    emit(rendered(draw))
    return 0


def _lines(path: str) -> Iterator[str]:
    folder = Path(path)
    if is_profile(path):
        yield from _profile(path)
        return
    if not folder.is_dir() or dumps.is_corpus_case(folder):
        yield from _module(path)
        return
    if cases := dumps.corpus_cases(folder):
        yield f"{printable(path)}: {plural(len(cases), 'captured module')}"
        cases = sorted(cases, key=dumps.case_bytes, reverse=True)
        yield from _listing([(case.name, dumps.case_bytes(case)) for case in cases])
        ran = slowest_module(path)
        shown = folder / ran if ran else cases[0]
        stage = "after" if dumps.is_tpu_case(shown) else "before"
        first = dumps.corpus_file(shown, stage)
        head = (yield from _head(first, shown.name)) if first is not None else None
        verify = ("compare the replay with XLA", "verify", path)
        check = ("check all of them in CI", "check", path, "--max-kernels", "50")
        yield from _next(str(shown), without=_without(head), more=[check, verify])
        return
    try:
        modules = dumps.DumpDirectory(folder).modules
    except HlofuseError as error:
        yield from _below(folder, str(error))
        return
    sizes = sorted(((m.size, m) for m in modules), key=lambda found: -found[0])
    ran = slowest_module(path)
    largest = next((m for m in modules if ran in (m.name, m.label)), sizes[0][1])
    name = largest.name if sum(m.name == largest.name for m in modules) == 1 else largest.label
    chosen = ("--module", name) if len(modules) > 1 else ()
    yield f"{printable(path)}: dump directory with {plural(len(modules), 'module')}"
    yield from _listing([(m.label, size) for size, m in sizes])
    there = Companions(path, largest.label)
    file = largest.best(choose_target(there).name)
    head = yield from _head(file, largest.label)
    every = [
        ("what each pass did", "timeline", path, *chosen),
        ("compare the replay with XLA", "verify", path),
    ]
    yield from _next(path, *chosen, without=_without(head), more=every if largest.between else [])


def _profile(path: str) -> Iterator[str]:
    found = read_profile(path)
    modules, total = found.modules, found.total_us or 1.0
    yield f"{printable(path)}: profile with {plural(len(modules), 'module')}"
    yield from _listing([(f"{m.label}  {100 * m.total_us / total:.0f}% of the time", 0) for m in modules])
    module = ("--module", modules[0].label) if len(modules) > 1 else ()
    if modules[0].proto is None:
        yield "It has times and no HLO. Next:"
        yield f"  {command_line('explain', 'DUMP', '--profile', path)}"
    else:
        without = _NOT_OF_TPU if any(d.kind == "tpu" for d in found.devices) else _REPLAYED
        more = [("where XLA's time model is off", "model-error", path)]
        yield from _next(path, *module, without=without, more=more)


def _below(folder: Path, error: str) -> Iterator[str]:
    """The subdirectories that have dumps; without any, how to get one."""
    found = dumps.folders_with_dumps(folder)
    if found:
        yield "HLO dumps in:"
        yield from _listing([(str(child), 0) for child in found])
        yield from _lines(str(found[0]))
        return
    if str(folder) != ".":
        yield printable(error)
    yield _NO_DUMP


def _module(path: str) -> Iterator[str]:
    file = Path(path)
    if file.is_file() and file.stat().st_size > _QUICKLY_READ_BYTES:
        yield from _head(file, path)
        yield from _next(path)
        return
    head = Head(identify_file(load(path)))
    yield from head_lines([head])
    fused = head.identity.shown.is_fused
    yield from _next(path, without=_without(head) or (_REPLAYED if fused else ()))


def _head(file: Path, name: str) -> Generator[str, None, Head | None]:
    """The head of a module; only its size if reading it takes long."""
    head = head_of_dump(file) if file.stat().st_size < _QUICKLY_READ_BYTES else None
    yield from head_lines([head]) if head else [f"{printable(name)}: {bytes_text(file.stat().st_size)}"]
    return head


def _without(head: Head | None) -> Sequence[str]:
    return _NOT_OF_TPU if head is not None and head.identity.backend.value == "tpu" else ()


def _next(
    path: str, *module: str, without: Sequence[str] = (), more: Sequence[Strings] = ()
) -> Iterator[str]:
    rows = [
        ("kernels, time, suggestions", "explain", path, *module),
        ("one kernel or source line, FILE:LINE", "explain", path, "NAME", *module),
        ("who generates each kernel", "kernels", path, *module),
        ("rank changes by what they save", "what-if", path, *module),
        ("every decision in a browser", "explore", path, "-o", "page.html", *module),
        ("draw it", "render", path, "-o", "module.svg", *module),
        *more,
    ]
    commands = [(command_line(*text), purpose) for purpose, *text in rows if text[0] not in without]
    width = max(len(text) for text, _ in commands)
    yield "Next:"
    for text, purpose in commands:
        yield f"  {text:<{width}}  {purpose}"


def _listing(found: list[tuple[str, int]]) -> Iterator[str]:
    for name, size in found[:_LISTED]:
        yield f"  {printable(name)}" + (f"  {bytes_text(size)}" if size else "")
    if len(found) > _LISTED:
        yield f"  … {len(found) - _LISTED:,} more"
