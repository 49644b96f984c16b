"""Shell completion: devices, targets, knobs, rules, passes, modules, instructions.

Each function is a `shell_complete` of click. None of them fails: without candidates it returns none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_LARGEST_FILE_BYTES = 1_000_000  # bytes of a file searched for names while the user waits
_MOST_NAMES = 200
_DEFINED = re.compile(r"^\s+(?:ROOT )?%?([\w.-]+) = ", re.MULTILINE)


def devices(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Devices that come with hlofuse; files where the word looks like a path."""
    from hlofuse.cost.gpu.device import device_names
    from hlofuse.cost.tpu import tpu_devices

    if "/" in incomplete or incomplete.startswith("."):
        return [_item(incomplete, type="file")]
    return _starting(incomplete, [*device_names(), *tpu_devices()])


def targets(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from hlofuse.pipelines.targets import TARGETS

    return _starting(incomplete, {name: target.title for name, target in TARGETS.items()})


def releases(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Releases of XLA, the newest first."""
    from hlofuse.releases import NAMES

    return _starting(incomplete, ["auto", *reversed(NAMES)])


def option_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Variants of a target's passes."""
    from hlofuse.pipelines.targets import TARGETS

    return _starting(incomplete, [name for t in _targets_of(ctx) for name in TARGETS[t].options])


def knobs(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`NAME=` of knobs and of numbers of a device."""
    from hlofuse.compilation.config import device_numbers
    from hlofuse.pipelines.targets import TARGETS
    from hlofuse.rules.catalogue import catalogue

    found = {f"{k.name}=": k.summary for rule in catalogue().values() for k in rule.knobs}
    for target in TARGETS:
        for number in device_numbers(target):
            if number not in ("name", "matrix_units"):
                found.setdefault(f"{number}=", "number of the device")
    return _starting(incomplete, found)


def rules(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from hlofuse.rules.catalogue import catalogue

    return _starting(incomplete.upper(), {code: rule.title for code, rule in catalogue().items()})


def optional_passes(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Passes that targets leave out by default."""
    from hlofuse.pipelines.targets import TARGETS

    return _starting(incomplete, [p.name for t in _targets_of(ctx) for p in TARGETS[t].optional_passes])


def one_pass(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A fusion pass of the target."""
    from hlofuse.passes.registry import pass_names

    return _starting(incomplete, sorted({name for t in _targets_of(ctx) for name in pass_names(t)}))


def passes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The next pass of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [_item(f"{before}{comma}{item.value}") for item in one_pass(ctx, param, last.strip())]


def modules(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from hlofuse.inputs.dump_directory import DumpDirectory
    from hlofuse.ir.errors import HlofuseError

    path = _input(ctx)
    try:
        found = DumpDirectory(path).modules if path is not None and path.is_dir() else []
    except HlofuseError:
        return []
    return _starting(incomplete, [m.name for m in found] + [m.label for m in found])


def names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Instructions of a small input, and of XLA's final module next to it."""
    percent = "%" if incomplete.startswith("%") else ""
    found: dict[str, None] = {}
    for file in _texts(ctx):
        try:
            if file.stat().st_size < _LARGEST_FILE_BYTES:
                found.update(dict.fromkeys(_DEFINED.findall(file.read_text("utf-8", "replace"))))
        except OSError:
            continue
    return _starting(incomplete, [percent + name for name in found])


def _texts(ctx: click.Context) -> list[Path]:
    from hlofuse.inputs.companions import Companions
    from hlofuse.inputs.dump_directory import DumpDirectory, corpus_file
    from hlofuse.ir.errors import HlofuseError

    path, target = _input(ctx), _targets_of(ctx)[0]
    if path is None or path.suffix == ".gz":
        return []
    if path.is_dir():
        case = corpus_file(path, "before")
        try:
            module = ctx.params.get("module")
            path = case if case is not None else DumpDirectory(path).pick(module).best(target)
        except HlofuseError:
            return []
    final = [f for t in ("cpu", "gpu") if (f := Companions(path).final_module(t)) is not None]
    return [f for f in (path, *final) if f.suffix != ".gz"]


def _input(ctx: click.Context) -> Path | None:
    # After an option that waits for its value, arguments are still words.
    value = ctx.params.get("input") or ctx.params.get("directory") or next(iter(ctx.args), None)
    return Path(value) if isinstance(value, str) and value != "-" else None


def _targets_of(ctx: click.Context) -> list[str]:
    """The target of the call, else all of them."""
    from hlofuse.pipelines.targets import TARGETS

    target = ctx.params.get("target")
    return [target] if target in TARGETS else list(TARGETS)


def _starting(incomplete: str, found: Iterable[str] | Mapping[str, str]) -> list[CompletionItem]:
    """The distinct candidates with this prefix, with explanations."""
    help_of = found if isinstance(found, Mapping) else {}
    chosen = [name for name in dict.fromkeys(found) if name.startswith(incomplete)]
    return [_item(name, help=help_of.get(name)) for name in chosen[:_MOST_NAMES]]


def _item(value: str, type: str = "plain", help: str | None = None) -> CompletionItem:
    from click.shell_completion import CompletionItem  # only at the Tab key

    return CompletionItem(value, type, help)
