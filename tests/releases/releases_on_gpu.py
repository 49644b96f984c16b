"""Shared by the tests of what differs between releases on GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.graph import Instruction
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import Release, release_of

DEVICE = load_device("h100_sxm")
REGION = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"


def operation(line: str, operands: tuple[str, ...]) -> Instruction:
    """The root of a module with parameters p0, p1 … of those shapes."""
    parameters = "\n".join(f"  p{i} = {t} parameter({i})" for i, t in enumerate(operands))
    module = parse_module(f"HloModule m\n\n{REGION}\nENTRY e {{\n{parameters}\n  ROOT r = {line}\n}}\n")
    assert module.entry.root is not None
    return module.entry.root


def flipped(release: str, behaviour: str) -> Release:
    """The release with one behaviour the other way round."""
    changed: dict[str, Any] = {behaviour: not getattr(release_of(release), behaviour)}
    return replace(release_of(release), **changed)
