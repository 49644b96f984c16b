"""Random programs as a list of operations, printed under any names, in any order, fused or not."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import strategies as st

from hlofuse.ir.record import replace

UNARY = ("exponential", "negate", "tanh", "sqrt", "abs")
BINARY = ("add", "multiply", "subtract", "maximum")
SHAPE = "f32[8,16]{1,0}"


@dataclass(frozen=True)
class Op:
    """One operation; operands are positions in the program."""

    opcode: str
    operands: tuple[int, ...] = ()
    payload: str | None = None
    attributes: str = ""
    shape: str = SHAPE

    @property
    def key(self) -> object:
        return (self.opcode, self.operands, self.payload, self.attributes, self.shape)


Program = tuple[Op, ...]


def values(program: Program) -> list[object]:
    """What each operation computes, as something equal where it is equal."""
    out: list[object] = []
    for op in program:
        out.append(hash((op.opcode, tuple(out[o] for o in op.operands), op.payload, op.attributes, op.shape)))
    return out


def is_plain(program: Program) -> bool:
    """No operation occurs twice: every value is computed once."""
    return len(set(values(program))) == len(program)


def is_clear(before: Program, after: Program, origin: list[int | None]) -> bool:
    """What AFTER computes is new or was computed by the same operation of BEFORE.

    Otherwise there is more than one way to tell the change: neg(neg(x)) instead of neg(x) has a
    new inner or a new outer neg.
    """
    old = {value: i for i, value in enumerate(values(before))}
    now = values(after)
    return is_plain(after) and all(old.get(v, i) == i for v, i in zip(now, origin, strict=True))


@st.composite
def programs(draw: st.DrawFn, *, longest: int = 24) -> Program:
    """A program without repeated operations."""
    count = draw(st.integers(1, 3))
    ops = [Op("parameter", payload=str(n)) for n in range(count)]
    seen = {op.key for op in ops}
    for _ in range(draw(st.integers(2, longest))):
        kind = draw(st.sampled_from(("unary", "binary", "binary", "constant", "reverse")))
        some = st.integers(0, len(ops) - 1)
        if kind == "unary":
            op = Op(draw(st.sampled_from(UNARY)), (draw(some),))
        elif kind == "binary":
            op = Op(draw(st.sampled_from(BINARY)), (draw(some), draw(some)))
        elif kind == "reverse":
            op = Op("reverse", (draw(some),), attributes=", dimensions={0}")
        else:
            value = draw(st.integers(0, 3))
            op = Op("constant", payload=str(value), shape="f32[]")
            if op.key in seen:
                continue
            ops.append(op)
            seen.add(op.key)
            op = Op("broadcast", (len(ops) - 1,), attributes=", dimensions={}")
        if op.operands and any(ops[o].shape != SHAPE for o in op.operands) and op.opcode != "broadcast":
            continue
        if op.key not in seen:
            seen.add(op.key)
            ops.append(op)
    return tuple(ops)


def users(program: Program, index: int) -> list[int]:
    return [i for i, op in enumerate(program) if index in op.operands]


def text(
    program: Program, *, seed: int = 0, fused: list[tuple[int, int]] | None = None, copies: bool = False
) -> str:
    """The program as HLO. The seed gives names and order; `fused` are ranges [i, j) to be fused.

    All results nobody uses are returned. With `copies`, constants are put into every fusion that
    uses them instead of being passed in.
    """
    r = random.Random(seed)
    numbers = r.sample(range(10, 10_000), 4 * len(program) + 50)
    name = [f"{op.opcode if seed % 2 else 'n'}.{numbers.pop()}" for op in program]
    inside = {i: n for n, (start, end) in enumerate(fused or []) for i in range(start, end)}
    inside = {i: n for i, n in inside.items() if program[i].opcode != "parameter"}
    computations: list[str] = []
    lines: dict[int, tuple[set[int], str]] = {}
    """Line number (that of its last operation) to what it needs and its text."""
    place: dict[int, str] = {}
    outputs = [i for i in range(len(program)) if not users(program, i)]

    for n in sorted(set(inside.values())):
        own = [i for i, m in inside.items() if m == n]
        if copies:
            extra = {o for i in own for o in program[i].operands if program[o].opcode == "constant"}
            own = sorted({*own, *extra})
        results = [
            i
            for i in own
            if inside.get(i) == n
            and (
                i in outputs
                or any(inside.get(u) != n and not (copies and u in own) for u in users(program, i))
            )
        ]
        arguments = sorted({o for i in own for o in program[i].operands} - set(own))
        r.shuffle(arguments)
        local = {o: f"param_{p}.{numbers.pop()}" for p, o in enumerate(arguments)}
        body = [f"  {local[o]} = {program[o].shape} parameter({p})" for p, o in enumerate(arguments)]
        for i in own:
            local[i] = f"{program[i].opcode}.{numbers.pop()}.clone"
            root = "ROOT " if results == [i] else ""
            body.append("  " + root + line(program[i], local[i], [local[o] for o in program[i].operands]))
        shape = program[results[0]].shape
        if len(results) != 1:
            shape = "(" + ", ".join(program[i].shape for i in results) + ")"
            body.append(f"  ROOT t.{numbers.pop()} = {shape} tuple({', '.join(local[i] for i in results)})")
        computation = f"fused.{numbers.pop()}"
        computations.append(f"{computation} {{\n" + "\n".join(body) + "\n}\n")
        fusion = f"fusion.{numbers.pop()}"
        for position, i in enumerate(results):
            place[i] = fusion if len(results) == 1 else f"{fusion}#{position}"
        lines[max(own)] = (
            set(arguments),
            f"{fusion} = {shape} fusion(@{',@'.join(map(str, arguments))}), kind=kLoop, calls={computation}"
            if arguments
            else f"{fusion} = {shape} fusion(), kind=kLoop, calls={computation}",
        )
    for i, op in enumerate(program):
        if i not in inside:
            place[i] = name[i]
            lines[i] = (set(op.operands), line(op, name[i], [f"@{o}" for o in op.operands]))

    # Any order in which operands come first.
    at = {i: i for i in range(len(program)) if i not in inside}
    for n in set(inside.values()):
        own = [i for i, m in inside.items() if m == n]
        for i in own:
            at[i] = max(own)
    waiting, done, body = dict(lines), set(), []
    while waiting:
        ready = sorted(k for k, (needs, _) in waiting.items() if all(at[o] in done for o in needs))
        chosen = r.choice(ready) if seed else ready[0]
        done.add(chosen)
        body.append("  " + waiting.pop(chosen)[1])
    shapes = ", ".join(program[i].shape for i in outputs)
    body.append(f"  ROOT out.{numbers.pop()} = ({shapes}) tuple({','.join(f'@{i}' for i in outputs)})")
    entry = "\n".join(body)
    for i in sorted(place, reverse=True):
        for end in (",", ")"):
            entry = entry.replace(f"@{i}{end}", f"{place[i]}{end}")
    r.shuffle(computations)
    return "HloModule m\n\n" + "\n".join(computations) + f"\nENTRY main.{numbers.pop()} {{\n{entry}\n}}\n"


def line(op: Op, name: str, operands: list[str]) -> str:
    inner = op.payload if op.payload is not None else ", ".join(operands)
    return f"{name} = {op.shape} {op.opcode}({inner}){op.attributes}"


# ---------------------------------------------------------------- one change


def with_op(program: Program, index: int, **changes: object) -> Program:
    return (*program[:index], replace(program[index], **changes), *program[index + 1 :])


def inserted(program: Program, user: int, position: int, opcode: str) -> Program:
    """With `opcode` between an operation and one of its operands."""
    shift = lambda o: o + 1 if o >= user else o  # noqa: E731
    new = Op(opcode, (program[user].operands[position],))
    rest = [replace(op, operands=tuple(map(shift, op.operands))) for op in program[user:]]
    operands = list(rest[0].operands)
    operands[position] = user
    rest[0] = replace(rest[0], operands=tuple(operands))
    return (*program[:user], new, *rest)


def without(program: Program, index: int) -> Program:
    """Without a unary operation: its users use its operand."""
    (source,) = program[index].operands
    move = lambda o: source if o == index else o - (o > index)  # noqa: E731
    rest = [replace(op, operands=tuple(map(move, op.operands))) for op in program[index + 1 :]]
    return (*program[:index], *rest)
