"""Two modules: read, compared as they are, and drawn side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.account import Account
from hlofuse.account.running import running
from hlofuse.diff import diff
from hlofuse.diff.accounts import Accounts, final_kernels
from hlofuse.format.escape import printable
from hlofuse.inputs import load
from hlofuse.inputs.companions import companions_of
from hlofuse.inputs.dump_directory import corpus_file
from hlofuse.inputs.identity import identify_file
from hlofuse.inputs.many import modules_at
from hlofuse.inputs.profile import is_profile, read_profile
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.answer import Answer
from hlofuse.library.listener import Listener
from hlofuse.pipelines import device_of
from hlofuse.releases import nearest
from hlofuse.reports.common.head import Head, head_lines
from hlofuse.reports.diff.json import as_dict
from hlofuse.reports.diff.model import summarize
from hlofuse.reports.diff.phrases import verdict
from hlofuse.reports.diff.text import draw as draw_summary

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.diff import ModuleDiff
    from hlofuse.diff.accounts import Accounts
    from hlofuse.ir.graph import Module
    from hlofuse.library.program import Program
    from hlofuse.render import ModulePair

SECTIONS = ("kernels", "fusions", "sources", "instructions", "header")  # those of `reports.diff.phrases`


def read_both(
    before: str, after: str, module: str | None, listener: Listener, stage: str | None = None
) -> tuple[Module, Module]:
    """BEFORE and AFTER; `module` picks from directories and from two files of several modules;
    of two directories the fusion passes' `stage`.

    Of two profiles it is the costliest program of BEFORE, and that of its name in AFTER.
    HlofuseError for what cannot be read.
    """
    if before == after == "-":
        raise HlofuseError("only one of BEFORE and AFTER can be standard input")
    if module is None and is_profile(before) and is_profile(after):
        module = read_profile(before).pick().name
    two_files = not any(map(os.path.isdir, (before, after)))
    if stage is not None:
        before, after = (_of_stage(path, module, stage) for path in (before, after))
        module = None
    with listener.activity("reading"):
        first, second = [
            load(path, module if two_files or os.path.isdir(path) else None) for path in (before, after)
        ]
    for read in (first, second):
        if read.text_note is not None:
            listener.note(f"{read.name}: {read.text_note}")
    return first, second


def pair_of_diff(diff: ModuleDiff) -> ModulePair:
    """The two modules for a picture side by side."""
    from hlofuse.render import ModulePair

    found = final_kernels(diff)
    return ModulePair(diff.before.module, diff.after.module, found.kernels, verdict(diff), found.notes)


def check_devices(before: str | None, after: str | None) -> None:
    """HlofuseError for devices that are not known, before anything is read."""
    if before is None and after is not None:
        raise HlofuseError("--device-after needs --device, the GPU of BEFORE")
    for name in (before, after):
        if name is not None:
            device_of("gpu", name)


def check_releases(releases: Iterable[str | None]) -> None:
    """HlofuseError for text that is no release, before anything is read."""
    for release in releases:
        if release not in (None, "auto"):
            nearest(release)


def accounts_of(
    diff: ModuleDiff,
    *,
    device: str | None,
    device_after: str | None,
    releases: tuple[str | None, str | None] = (None, None),
) -> Accounts:
    """The launches of either side, after repeating the remaining passes.

    Devices and releases are those of the call, else those in the dumps.
    """

    modules = diff.before.module, diff.after.module
    finals: list[Account] = []
    compared: list[Account] = []
    names: list[str] = []
    unfused: list[bool] = []
    for module, name, xla in zip(modules, (device, device_after or device), releases, strict=True):
        identity = identify_file(module, xla)
        recorded = companions_of(module).recorded_device if name is None else None
        on = device_of("gpu", name)[0] if name is not None else recorded.device if recorded else None
        final, as_it_is = running(module, identity, on)
        unfused.append(not identity.shown.is_fused)
        finals.append(final)
        compared.append(as_it_is)
        names += [on.name] if on is not None else []
    devices = (names[0], names[1]) if len(names) == 2 else None
    if unfused[0] != unfused[1]:  # what the passes between the two do is the question
        finals = compared
    return Accounts(finals[0], finals[1], (compared[0], compared[1]), devices)


def _of_stage(path: str, module: str | None, stage: str) -> str:
    if module is None:
        name = "after" if stage == "output" else "before"
        file = corpus_file(Path(path), name)
        if file is None:
            raise HlofuseError(f"{printable(path)} has no {name}.hlo")
        return str(file)
    return str(modules_at(Path(path), stage).pick(module))


def compared(
    before: Module,
    after: Module,
    *,
    devices: tuple[str | None, str | None] = (None, None),
    releases: tuple[str | None, str | None] = (None, None),
    runs: tuple[Program, Program] | None = None,
    metadata: bool = False,
    listener: Listener,
) -> Answer[ModuleDiff]:
    """The differences of AFTER; times where devices are given or found next to the modules.

    With `runs` the launched kernels of both sides are compared, with their measured times.
    """

    launched = None if runs is None else (runs[0].account, runs[1].account)
    pair = (before, after) if launched is None else (launched[0].module, launched[1].module)
    with listener.activity("comparing"):
        found = diff(*pair, metadata=metadata)

    @cache
    def accounts() -> Accounts:
        if runs is not None and launched is not None:
            before_on, after_on = (p.loaded.device for p in runs)
            on = (before_on.name, after_on.name) if before_on and after_on else None
            return Accounts(*launched, launched, on)
        return accounts_of(found, device=devices[0], device_after=devices[1], releases=releases)

    heads = [Head(identify_file(m, xla)) for m, xla in zip((before, after), releases, strict=True)]

    def draw(console: Console, limit: int = 20, only: Sequence[str] = SECTIONS) -> None:
        for line in head_lines(heads):
            console.print(line, style="dim")
        draw_summary(summarize(found, accounts()), console, limit=limit, only=only)

    return Answer(
        "difference",
        lambda: found,
        json=lambda data: as_dict(data, accounts()),
        body=draw,
        rows_of=lambda document: document["fusions"],
        entries_of=lambda data: data.fusions,
        heads=heads,
        prints_heads=True,
    )
