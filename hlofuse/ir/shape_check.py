"""Checks that dimensions fit together, as XLA's verifier does (`xla/service/hlo_verifier.cc`). Layouts and
the precision of floating-point numbers are not compared; unlisted opcodes may have any shape."""

import re
from collections.abc import Callable

from hlofuse.ir.opcodes import values
from hlofuse.ir.text.infer import Given, Unfit
from .errors import HloParseError
from .graph import Instruction, InstructionSequence, Module
from .opcodes import with_operands, with_trait
from .shape import ARRAY_TYPES, FLOATING_TYPES, UNBOUNDED, Ints, Shape, compatible, sizes_agree
from .text.errors import Rejected, locate
from .text.infer import RULES
from .text.patterns import PARENTHESES, split_tuple

_TUPLE = re.compile(PARENTHESES)
Check = Callable[[Instruction], str | None]


def first_misfit(module: Module) -> tuple[Instruction, str] | None:
    """The first instruction whose shapes do not fit, and the expected ones; None if all fit."""
    check_of = _CHECKS.get
    # Most instructions are like another, up to names and metadata. The module keeps the shapes alive.
    passed = set()
    for computation in module.computations:
        for x in computation._slots:
            check = check_of(x.opcode) if x is not None else None
            if x is None or check is None:
                continue
            shape = x.shape
            if check is _elementwise:
                for o in x.operands:
                    if o.sizes != shape.dimensions:
                        break
                else:
                    continue
            elif check is not _calling:
                own = x.attributes.text.partition(", metadata=")[0] if check is not _arithmetic else ""
                key = (check, own, id(shape), *[id(o.shape) for o in x.operands])
                if key in passed:
                    continue
                passed.add(key)
            try:
                problem = check(x)
            except (IndexError, TypeError, ValueError):
                continue  # attributes in a form that other parts judge
            if problem is not None:
                return x, problem
    return None


def misfit_error(text: str, x: Instruction, problem: str, filename: str | None) -> HloParseError:
    assert x.computation is not None
    head = re.search(rf"^(?:ENTRY )?%?{re.escape(x.computation.name)} .*{{", text, re.MULTILINE)
    place = head.start() if head is not None else 0
    for name in (x.name, x.name.rpartition(".")[0]):  # a number may have been added to make it unique
        line = rf"^[ \t]*(?:ROOT )?%?{re.escape(name)} *=.*? ({re.escape(x.opcode)})\("
        if (found := re.compile(line, re.MULTILINE).search(text, place)) is not None:
            place = found.start(1)
            break
    return locate(text, Rejected(place, f"{x.opcode} {_brief(problem)}"), filename)


def _brief(problem: str) -> str:
    """The problem; of long tuples the first element that differs."""
    texts = _TUPLE.findall(problem)
    found = [split_tuple(text) or [] for text in texts]
    bare = [[part.partition("{")[0] for part in parts] for parts in found]
    n = next((n for n, parts in enumerate(zip(*bare, strict=False)) if len({*parts}) > 1), 0)
    for text, parts in zip(texts, found, strict=True):
        if len(parts) > max(n, 6):
            problem = problem.replace(text, f"({len(parts)} elements, number {n}: {parts[n]})", 1)
    return problem


def _dimensions_agree(a: Shape, b: Shape) -> bool:
    return compatible(a, b, types=False)


def _dimensions(sizes: Ints) -> str:
    return f"[{','.join(map(str, sizes))}]"


def _check_result(x: Instruction, expected: Ints) -> str | None:
    """The message for a result without the expected dimensions; None where they fit."""
    if sizes_agree(x.sizes, expected):
        return None
    given = ", ".join(str(o.shape) for o in x.operands)
    return f"of {given} has dimensions {_dimensions(expected)}, not {_dimensions(x.sizes)}"


def _check_elementwise(x: Instruction, operands: InstructionSequence) -> str | None:
    """No implicit broadcast: operands have the dimensions of the result."""
    shape = x.shape
    for o in operands:
        if o.shape is not shape and not _dimensions_agree(o.shape, shape):
            expected = f"operands of {_dimensions(shape.dimensions)}, the dimensions of its result"
            return f"takes {expected}, but {o.name} is {o.shape}"
    return None


def _elementwise(x: Instruction) -> str | None:
    return _check_elementwise(x, x.operands)


def _arithmetic(x: Instruction) -> str | None:
    shape = x.shape
    for o in x.operands:
        if o.shape is not shape:
            types = o.element_type, shape.element_type
            if (
                types[0] != types[1]
                and not FLOATING_TYPES.issuperset(types)
                and ARRAY_TYPES.issuperset(types)
            ):
                return f"takes operands of {types[1]}, the type of its result, but {o.name} is {o.shape}"
    return _check_elementwise(x, x.operands)


def _check_choice(x: Instruction) -> str | None:
    scalars = x.operands[:1] if x.opcode == "select" else x.operands[::2]
    return _check_elementwise(x, [o for o in x.operands if o not in scalars or o.sizes])


_NAMED = {
    "iota": {"iota_dimension": -1},
    "sort": {"dimensions": 0},
    "gather": {"offset_dims": -1, "collapsed_slice_dims": 0, "start_index_map": 0},
    "scatter": {"update_window_dims": -2, "inserted_window_dims": 0, "scatter_dims_to_operand_dims": 0},
}
"""Attributes that name dimensions of an operand, by its number, of the last (-2), or of the result (-1)."""


def _named(x: Instruction) -> str | None:
    for name, number in _NAMED[x.opcode].items():
        shape, value = (x.shape, *(o.shape for o in x.operands))[number + 1], x.attributes.get(name)
        places = value if isinstance(value, tuple) else (value,) * (value is not None)
        if len({*places}.intersection(range(len(shape.dimensions)))) < len(places):
            return f"names dimensions of {shape}, each once, by {name}, not {_dimensions(places)}"
    return None


def _broadcast(x: Instruction) -> str | None:
    before, after = x.operand.sizes, x.sizes
    places = x.attributes.get("dimensions") or ()
    if len(places) != len(before):
        return f"needs one of dimensions={{…}} for each of {_dimensions(before)}, not {len(places)}"
    if len({*places}) < len(places):
        return f"names each dimension of {x.shape} once, not {_dimensions(places)}"
    for size, place in zip(before, places, strict=True):
        if not 0 <= place < len(after) or not sizes_agree((size,), (after[place],)):
            return f"cannot have {x.operand.shape} as dimensions {_dimensions(places)} of {x.shape}"
    return None


def _check_inferred(x: Instruction) -> str | None:
    shapes = [o.shape for o in x.operands]
    if "sparsity" in x.attributes.text or any(UNBOUNDED in s.dimensions for s in shapes):
        return None
    try:
        expected = RULES[x.opcode](Given(x.opcode, x.operands, x.attributes, dict(x.called)))
    except Unfit as error:
        return str(error)
    except (IndexError, KeyError, ValueError):
        return f"names a dimension that its operands do not have: {', '.join(map(str, shapes))}"
    if _dimensions_agree(expected, x.shape):
        return None
    given = ", ".join(map(str, shapes))
    return f"of {given} is {expected.text_without_layout}, not {x.shape.text_without_layout}"


def _slice(x: Instruction) -> str | None:
    before, ranges = x.operand.shape, x.attributes["slice"]
    if len(ranges) != len(before.dimensions):
        return f"takes a range for each dimension of {before}, not {len(ranges)}"
    for size, r in zip(before.dimensions, ranges, strict=True):
        if not 0 <= r.start <= r.limit <= (size if size != UNBOUNDED else r.limit) or r.stride < 1:
            return f"takes ranges inside {before}, not {r}"
    return _check_result(x, [-((r.start - r.limit) // r.stride) for r in ranges])


def _dynamic_slice(x: Instruction) -> str | None:
    before, sizes = x.operand.shape, x.attributes["dynamic_slice_sizes"]
    if len(sizes) != len(before.dimensions):
        return f"takes a size for each dimension of {before}, not {len(sizes)}"
    if any(s > d != UNBOUNDED for s, d in zip(sizes, before.dimensions, strict=True)):
        return f"takes sizes inside {before}, not {_dimensions(sizes)}"
    return _check_result(x, sizes)


def _dynamic_update_slice(x: Instruction) -> str | None:
    before, update = x.operand.sizes, x.second.sizes
    if len(before) != len(update) or any(u > b != UNBOUNDED for u, b in zip(update, before, strict=True)):
        return f"takes an update that fits into {x.operand.shape}, not {x.second.shape}"
    return _check_result(x, before)


def _tuple(x: Instruction) -> str | None:
    for n, (o, s) in enumerate(zip(x.operands, x.shape.tuple_shapes, strict=True)):
        if o.shape is not s and not _dimensions_agree(o.shape, s):
            return f"has {s} as element {n}, but {o.name} is {o.shape}"
    return None


def _calling(x: Instruction) -> str | None:
    body = x.to_apply
    if len(body.parameters) != x.operand_count:
        return f"has {x.operand_count} operands, but {body.name} has {len(body.parameters)} parameters"
    for o, p in zip(x.operands, body.parameters, strict=True):
        if o.shape is not p.shape and not _dimensions_agree(o.shape, p.shape):
            return f"takes {p.shape}, parameter {p.payload} of {body.name}, but {o.name} is {o.shape}"
    if _dimensions_agree(body.root.shape, x.shape):
        return None
    return f"is {body.root.shape}, the result of {body.name}, not {x.shape}"


_UNARY, _BINARY = (with_trait("elementwise") & with_operands(n) for n in (1, 2))
_UNTYPED = values("compare complex stochastic-convert")  # their result has a type of its own
_CHECKS: dict[str, Check] = {
    **dict.fromkeys(_UNARY - {"bitcast-convert"}, _elementwise),
    **dict.fromkeys(_UNTYPED | {"map", "reverse"}, _elementwise),
    **dict.fromkeys(_BINARY - _UNTYPED - {"mulhi"}, _arithmetic),
    "select": _check_choice,
    "clamp": _check_choice,
    "broadcast": _broadcast,
    **dict.fromkeys(_NAMED, _named),
    **dict.fromkeys("concatenate dot get-tuple-element pad reduce transpose".split(), _check_inferred),
    "slice": _slice,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "tuple": _tuple,
    "fusion": _calling,
    "call": _calling,
}
