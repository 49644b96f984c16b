"""Two modules: read from the command line, and their difference made ready to be drawn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hlofuse.cli.common.progress import spinner
from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError
from hlofuse.pipelines import device_of

if TYPE_CHECKING:
    from hlofuse.diff import ModuleDiff
    from hlofuse.diff.times import Times
    from hlofuse.ir.graph import Module
    from hlofuse.render import ModulePair


def read_both(before: str, after: str, module: str | None, stage: str | None = None) -> tuple[Module, Module]:
    """BEFORE and AFTER; `module` picks from directories and from two files of several modules;
    of two directories the fusion passes' `stage`.

    HlofuseError for what cannot be read.
    """
    from hlofuse.inputs import load

    if before == after == "-":
        raise HlofuseError("standard input can be only one of BEFORE and AFTER")
    two_files = not any(map(os.path.isdir, (before, after)))
    if stage is not None:
        before, after = (_of_stage(path, module, stage) for path in (before, after))
        module = None
    with spinner("reading"):
        first, second = [
            load(path, module if two_files or os.path.isdir(path) else None) for path in (before, after)
        ]
    for read in (first, second):
        if read.text_note is not None:
            click.echo(f"note: {read.name}: {read.text_note}", err=True)
    return first, second


def pair_of_diff(diff: ModuleDiff) -> ModulePair:
    """What the renderer draws side by side."""
    from hlofuse.diff.final_kernels import final_kernels
    from hlofuse.render import ModulePair
    from hlofuse.reports.diff.phrases import verdict

    found = final_kernels(diff)
    return ModulePair(diff.before.module, diff.after.module, found.kernels, verdict(diff), found.notes)


def picture_of(diff: ModuleDiff) -> str:
    """Both sides as an SVG. HlofuseError where there is no Graphviz."""
    from hlofuse.render import render

    with spinner("drawing"):
        return render(pair_of_diff(diff), "both").to_svg()


def picture_if_possible(diff: ModuleDiff) -> str | None:
    """The same, None where the picture has to be done without: the words stand by themselves."""
    try:
        return picture_of(diff)
    except HlofuseError as e:
        click.echo(f"note: the page has no picture: {e}", err=True)
        return None


def times_on(before: str | None, after: str | None) -> Times | None:
    """Estimates on the devices named; None without a name."""
    if before is None and after is None:
        return None
    from hlofuse.account import KernelTimes
    from hlofuse.diff.times import Times

    if before is None:
        raise HlofuseError("--device-after goes with --device, the GPU of BEFORE")
    sides = [device_of("gpu", name)[0] for name in (before, after or before)]
    first, second = (KernelTimes(device) for device in sides if device is not None)
    return Times(first.us, second.us, (first.device.name, second.device.name))


def _of_stage(path: str, module: str | None, stage: str) -> str:
    from hlofuse.inputs.dump_directory import corpus_file
    from hlofuse.inputs.many import modules_at

    if module is None:
        name = "after" if stage == "output" else "before"
        file = corpus_file(Path(path), name)
        if file is None:
            raise HlofuseError(f"{printable(path)} has no {name}.hlo")
        return str(file)
    return str(modules_at(Path(path), stage).pick(module))
