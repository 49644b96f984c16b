"""Shared by the tests of what differs between releases on GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.graph import Instruction
from hlofuse.ir.record import replace
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import Release, release_of
from ..fixtures import Case

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


def many_parameters(count: int) -> Case:
    """A sum of that many arrays, for a Triton fusion of as many, with XLA's answers (for 49)."""

    def added(last: str) -> str:
        lines = [f"  p.{k} = f32[8]{{0}} parameter({k})" for k in range(count)]
        lines += ["  q.0 = f32[8]{0} negate(p.0)"]
        lines += [f"  q.{k} = f32[8]{{0}} add(q.{k - 1}, p.{k})" for k in range(1, count)]
        return "\n".join([*lines, f"  {last.format(f'q.{count - 1}')}\n"])

    given = [f"x.{k}" for k in range(2 * count - 1)]
    row = "z = f32[] constant(0)\n  s = f32[] reduce(p.0, z), dimensions={{0}}, to_apply=add\n"
    row += "  t = f32[8]{{0}} broadcast(s), dimensions={{}}\n  ROOT d = f32[8]{{0}} divide({}, t)"
    config = '"block_level_fusion_config":{"num_warps":"1","output_tiles":[{"sizes":["8"]}]}'
    text = f"HloModule wide\n\n{REGION}\nproducer {{\n{added('ROOT n = f32[8]{{0}} negate({})')}}}\n\n"
    text += f"consumer {{\n{added(row)}}}\n\nENTRY main {{\n"
    text += "\n".join(f"  {name} = f32[8]{{0}} parameter({k})" for k, name in enumerate(given))
    text += f"\n  f.1 = f32[8]{{0}} fusion({', '.join(given[:count])}), kind=kLoop, calls=producer\n"
    text += f"  ROOT g.1 = f32[8]{{0}} fusion(f.1, {', '.join(given[count:])}), kind=kCustom, calls=consumer,"
    text += f' backend_config={{"fusion_backend_config":{{"kind":"__triton",{config}}}}}\n}}\n'
    limit = "refused f.1: Number of operands and output buffers is larger than allowed budget per fusion"
    fused = "time f.1.0 1.05075 2.14675\nrefused g.1.0: No users to fuse"
    options = {"differs": "triton_limits_parameters", "xla": "0.6.2"}
    answers = {("EXPECT", "0.5.3"): fused, ("EXPECT", "0.6.2"): limit}
    return Case(Path("many_parameters.hlo"), "wide", options, text, answers)
