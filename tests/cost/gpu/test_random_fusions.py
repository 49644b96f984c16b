"""Fusions of random small modules: figures put together from parts are those of a look at the whole graph."""

from __future__ import annotations

import random

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.cost.gpu.model import pair_operand_reads
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import release_of
from .test_structure import _figures, _fuse

HEAD = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  zero = f32[] constant(0)
  x = f32[64,64]{1,0} parameter(0)
  y = f32[64,64]{1,0} parameter(1)
  v = f32[64]{0} parameter(2)
  k = s32[] parameter(3)
"""
SQUARE, ROW = "f32[64,64]{1,0}", "f32[64]{0}"
SQUARES = (
    "negate({s})",
    "exponential({s})",
    "add({s}, {t})",
    "multiply({s}, {s})",
    "transpose({s}), dimensions={{1,0}}",
    "broadcast({v}), dimensions={{0}}",
    "broadcast({v}), dimensions={{1}}",
    "concatenate({h}, {h}), dimensions={{0}}",
    "reverse({s}), dimensions={{1}}",
    "dynamic-update-slice({s}, {h}, k, k)",
)
ROWS = (
    "reduce({s}, zero), dimensions={{1}}, to_apply=sum",
    "reduce({s}, zero), dimensions={{0}}, to_apply=sum",
    "negate({v})",
    "add({v}, {w})",
)


def program(choose: random.Random) -> str:
    """Squares `s`, halves `h` and rows `v` of earlier ones; all that nobody reads is a result."""
    squares, rows, lines = ["x", "y"], ["v"], [HEAD]
    unread: dict[str, str] = {}
    for n in range(choose.randrange(6, 14)):
        drawn = {"s": choose.choice(squares[-4:]), "t": choose.choice(squares[-4:])}
        drawn |= {"v": choose.choice(rows[-3:]), "w": choose.choice(rows[-3:])}
        is_square = choose.random() < 0.7
        operation = choose.choice(SQUARES if is_square else ROWS)
        if "{h}" in operation:
            low = choose.choice([0, 8, 32])
            lines.append(
                f"  h{n} = f32[32,64]{{1,0}} slice({drawn['s']}), slice={{[{low}:{low + 32}], [0:64]}}\n"
            )
            drawn["h"] = f"h{n}"
        text = operation.format(**drawn)
        lines.append(f"  i{n} = {SQUARE if is_square else ROW} {text}\n")
        (squares if is_square else rows).append(f"i{n}")
        for name in [name for name in unread if f"{name}," in text + "," or f"{name})" in text]:
            del unread[name]
        if "h" in drawn:
            unread.pop(drawn["s"], None)
        unread[f"i{n}"] = SQUARE if is_square else ROW
    shapes, names = ", ".join(unread.values()), ", ".join(unread)
    return "".join([*lines, f"  ROOT r = ({shapes}) tuple({names})\n}}\n"])


def candidates(module: Module) -> list[tuple[Instruction, Instruction]]:
    return [
        (producer, consumer)
        for producer in module.entry
        if producer.opcode not in ("parameter", "constant", "tuple")
        and not (producer.opcode == "fusion" and producer.is_multi_output_fusion)
        for consumer in producer.users
        if consumer.opcode not in ("tuple", "parameter")
    ]


@pytest.mark.parametrize("release", ["0.11.1", "0.4.35"])
@pytest.mark.parametrize("device", ["h100_sxm", "b200", "mi350"])
@pytest.mark.parametrize("seed", range(40))
def test_parts_give_the_figures_of_the_whole(seed: int, device: str, release: str) -> None:
    choose, module = random.Random(seed), parse_module(program(random.Random(seed)))
    used, on = release_of(release), load_device(device)
    model = kernel_model(on, used)
    for _ in range(12):
        if not (pairs := candidates(module)):
            break
        producer, consumer = choose.choice(pairs)
        together = model.pair_launch(producer, consumer)
        model.pair(producer, consumer)
        for part in (producer, consumer):
            model.run_time(part)
        estimate = model.pair_time(producer, consumer)
        assert estimate == kernel_model(on, used).pair_time(producer, consumer)
        assert sum(r.ticks for r in pair_operand_reads(model, producer, consumer)) == estimate.read
        assert sum(r.read for r in pair_operand_reads(model, producer, consumer)) == estimate.bytes_read
        fusion = _fuse(model, module, producer.name, consumer.name)
        fresh = kernel_model(on, used)
        assert model.launch(fusion) == fresh.launch(fusion)
        assert _figures(model.summary(fusion)) == _figures(fresh.summary(fusion))
        assert model.run_time(fusion) == fresh.run_time(fusion)
        assert together == fresh.launch(fusion)
