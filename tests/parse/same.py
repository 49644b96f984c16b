"""Equality of two modules, as far as their text shows it."""

from __future__ import annotations

from collections.abc import Iterator

from hlofuse.ir import Computation, Instruction, Module


def differences(a: Module, b: Module) -> Iterator[str]:
    """What tells the two apart, in words; nothing when they are the same."""
    yield from _unequal("name", a.name, b.name)
    yield from _unequal("attributes", dict(a.attributes.raw_items), dict(b.attributes.raw_items))
    yield from _unequal("entry", a.entry.name, b.entry.name)
    yield from _unequal("stack frames", a.stack_frames, b.stack_frames)
    names = [c.name for c in a.computations], [c.name for c in b.computations]
    yield from _unequal("computations", *names)
    if names[0] == names[1]:
        for x, y in zip(a.computations, b.computations, strict=True):
            yield from _computation(x, y)


def _computation(a: Computation, b: Computation) -> Iterator[str]:
    where = a.name
    yield from _unequal(f"{where}: root", a.root.name, b.root.name)
    yield from _unequal(f"{where}: suffix", a.attributes_text.strip(), b.attributes_text.strip())
    yield from _unequal(f"{where}: parameters", *([p.name for p in c.parameters] for c in (a, b)))
    yield from _unequal(f"{where}: callers", *([(i.name, n) for i, n in c.callers.items()] for c in (a, b)))
    names = [i.name for i in a], [i.name for i in b]
    yield from _unequal(f"{where}: instructions", *names)
    if names[0] == names[1]:
        for x, y in zip(a, b, strict=True):
            yield from _instruction(where, x, y)


def _instruction(where: str, a: Instruction, b: Instruction) -> Iterator[str]:
    where = f"{where}/{a.name}"
    yield from _unequal(f"{where}: id", a.id, b.id)
    yield from _unequal(f"{where}: opcode", a.opcode, b.opcode)
    yield from _unequal(f"{where}: shape", a.shape, b.shape)
    yield from _unequal(f"{where}: payload", _plain(a.payload), _plain(b.payload))
    yield from _unequal(f"{where}: attributes", dict(a.attributes.raw_items), dict(b.attributes.raw_items))
    for edges in ("operands", "users", "control_predecessors", "control_successors"):
        yield from _unequal(f"{where}: {edges}", *([i.name for i in getattr(x, edges)] for x in (a, b)))
    yield from _unequal(f"{where}: called", *([(k, c.name) for k, c in x.called] for x in (a, b)))


def _plain(payload: str | None) -> str | None:
    return None if payload is None else "".join(payload.split())


def _unequal(what: str, a: object, b: object) -> Iterator[str]:
    if a != b:
        yield f"{what}: {a!r} != {b!r}"
