"""XLA's checks of an instruction during parsing, beyond spelling: operands, attributes, values. Shapes are
compared, not inferred: XLA infers them only where the text leaves them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.shape import UNBOUNDED, Shape, compatible
from .errors import Place, Rejected, opcode_error, suggestion
from .signatures import VARIADIC, Signature, allowed_values, signature, split_async

if TYPE_CHECKING:
    from lark import Token

    from hlofuse.ir.graph import InstructionSequence
    from .tree.nodes import AttributeNode, InstructionNode


def signature_or_error(opcode: Token) -> Signature:
    spec = signature(opcode)
    if spec is None:
        raise opcode_error(opcode, opcode)
    return spec


def check_attributes(opcode: str, spec: Signature, nodes: Sequence[AttributeNode], end: int) -> None:
    """Check that attributes are known, unique and complete; `end` is the place of a missing one."""
    seen = set()
    for node in nodes:
        name = node.name
        where = node.key
        if name in seen:
            raise Rejected(where, f"the attribute {name} is given twice")
        seen.add(name)
        if name not in spec.allowed:
            hint = suggestion(name, spec.allowed)
            raise Rejected(where, f"{opcode} has no attribute {name}{hint}")
        values = node.value if isinstance(node.value, tuple) else (node.value,)
        for word in values:
            if isinstance(word, str) and (right := allowed_values(opcode, name, word)):
                raise Rejected(
                    node.start, f"{name}={word} is unknown; expected one of {', '.join(sorted(right))}"
                )
        wants_lists = split_async(opcode)[0] != "gather"
        if (
            name == "slice_sizes"
            and any(isinstance(v, tuple) for v in node.value) != wants_lists
            and node.value
        ):
            raise Rejected(node.start, "expected a list of " + ("lists" if wants_lists else "numbers"))
    for name in sorted(spec.required - seen):
        raise Rejected(end, f"{opcode} needs the attribute {name}=")


_ASYNC = with_trait("async")
ONE_DIMENSION = frozenset(
    (
        "all-gather all-gather-start reduce-scatter all-to-all ragged-all-to-all sort concatenate"
        " get-dimension-size set-dimension-size scan"
    ).split()
)


def check_instruction(node: InstructionNode, spec: Signature, operands: InstructionSequence) -> None:
    """Check operand counts and conditions of single opcodes."""
    call = node.call
    opcode = str(call.opcode)
    base, stage = split_async(opcode)
    where = call.opcode
    count = len(operands)
    values = {a.name: a for a in node.attributes}
    if stage is not None or opcode in _ASYNC:
        _check_async(node, stage or opcode.removeprefix("async-"), operands, where)
    elif spec.operands != VARIADIC and count != spec.operands:
        raise Rejected(where, f"{opcode} takes {_operands(spec.operands)}, not {count}")
    if base in ONE_DIMENSION and (d := values.get("dimensions")) and len(d.value) != 1:
        raise Rejected(d.start, f"{base} takes exactly one dimension, for example dimensions={{0}}")
    if base in ("collective-permute", "collective-permute-start"):
        pairs = values.get("source_target_pairs")
        if pairs is not None and any(len(p) != 2 for p in pairs.value):
            raise Rejected(pairs.start, "expected pairs, for example {{0,1},{1,0}}")
        if "slice_sizes" in values and stage is None and count != 4:
            raise Rejected(where, f"{opcode} with slice_sizes takes 4 operands, not {count}")
    if stage is not None:
        return
    if "all-reduce" in opcode or opcode == "reduce-scatter":
        flag = values.get("use_global_device_ids")
        if flag is not None and flag.value and "channel_id" not in values and "mode" not in values:
            raise Rejected(flag.key, "use_global_device_ids=true needs a channel_id")
    check = CHECKS.get(opcode)
    if check is not None and (message := check(Written(operands, values, node.shape))):
        raise Rejected(where, f"{opcode} {message}")


def _operands(count: int) -> str:
    return "no operands" if count == 0 else "1 operand" if count == 1 else f"{count} operands"


def _check_async(
    node: InstructionNode,
    stage: str,
    operands: InstructionSequence,
    where: Place,
) -> None:
    opcode = str(node.call.opcode)
    shape = node.shape
    if stage in ("start", "update") and (
        shape is None
        or not shape.is_tuple
        or len(shape.tuple_shapes) < 2
        or not shape.tuple_shapes[0].is_tuple
    ):
        raise Rejected(where, f"the shape of {opcode} is ((operands...), result, ...)")
    if stage == "start":
        return
    if not operands:
        raise Rejected(where, f"{opcode} takes the operation it belongs to as its operand")
    before = operands[0].opcode
    if before == "async-done" or split_async(before)[1] == "done":
        raise Rejected(where, f"{opcode} cannot follow {before}")


class Written(NamedTuple):
    """An instruction as written, with or without its shape."""

    operands: InstructionSequence
    values: dict[str, AttributeNode]
    shape: Shape | None


Check: TypeAlias = Callable[[Written], str | None]
"""The message for an instruction whose operands and result do not fit; None where they do."""


def _even(x: Written) -> str | None:
    return f"takes an even number of operands, not {len(x.operands)}" if len(x.operands) % 2 else None


def _reduce_window(x: Written) -> str | None:
    return _even(x) if x.operands else "takes at least one input and its initial value"


def _scatter(x: Written) -> str | None:
    return None if len(x.operands) % 2 else f"takes an odd number of operands, not {len(x.operands)}"


def _slice_operands(fixed: int, message: str, operands: InstructionSequence) -> str | None:
    if len(operands) < fixed:
        return message
    indices = operands[fixed:]
    if len(indices) == 1 and len(indices[0].sizes) == 1:
        return None
    rank = len(operands[0].sizes)
    return None if len(indices) == rank else f"takes one start index a dimension: {rank}, not {len(indices)}"


def _tuple(x: Written) -> str | None:
    if x.shape is None or len(x.shape.tuple_shapes) == len(x.operands):
        return None
    return f"has {len(x.operands)} operands and {len(x.shape.tuple_shapes)} elements in its shape"


def _same_count(x: Written) -> str | None:
    if x.shape is None:
        return None
    before = x.operands[0].shape if x.operands else None
    if before is None:
        return "takes at least one operand"
    if not x.shape.is_array or not before.is_array:
        return "goes from array to array"
    if UNBOUNDED in before.dimensions or x.shape.element_count == before.element_count:
        return None
    counts = f"{before} has {before.element_count} and {x.shape} {x.shape.element_count}"
    return f"keeps the number of elements, but {counts}"


def _dynamic_reshape(x: Written) -> str | None:
    if (message := _same_count(x)) or x.shape is None:
        return message
    if len(x.operands) - 1 != len(x.shape.dimensions):
        return f"takes one size a dimension: {len(x.shape.dimensions)}, not {len(x.operands) - 1}"
    return None


def _recv(x: Written) -> str | None:
    return "has a tuple for its shape" if x.shape is None or not x.shape.tuple_shapes else None


def _conditional(x: Written) -> str | None:
    if not x.operands:
        return "takes at least one operand"
    index = x.operands[0].shape
    if not index.is_array or index.dimensions or index.element_type not in ("pred", "s32"):
        return "chooses by a scalar pred[] or s32[]"
    if index.element_type == "pred":
        wanted = {"true_computation", "false_computation"}
        branches = 2
    else:
        wanted = {"branch_computations"}
        branches = len(x.values["branch_computations"].value) if "branch_computations" in x.values else 0
    given = {k for k in x.values if k.endswith("_computation") or k == "branch_computations"}
    if given != wanted:
        return f"over {index} takes {' and '.join(sorted(wanted, reverse=True))}"
    if not branches or len(x.operands) != branches + 1:
        return f"takes an operand for each of its {branches} branches, not {len(x.operands) - 1}"
    return None


def _broadcast(x: Written) -> str | None:
    before = x.operands[0].shape
    scalar = before.is_array and not before.dimensions
    return None if scalar or "dimensions" in x.values else "needs the attribute dimensions="


def _custom_call(x: Written) -> str | None:
    layouts = x.values.get("operand_layout_constraints")
    if layouts is None:
        return None
    if len(layouts.value) != len(x.operands):
        return f"has {len(x.operands)} operands and {len(layouts.value)} operand_layout_constraints"
    for number, (wanted, operand) in enumerate(zip(layouts.value, x.operands, strict=True)):
        if not compatible(wanted, operand.shape):
            return f"constrains operand {number} to {wanted}, but it is {operand.shape}"
    return None


def _channel(x: Written) -> str | None:
    before = x.operands[0]
    if before.opcode not in ("send", "recv", "send-done", "recv-done"):
        return None
    channel = x.values["channel_id"].value if "channel_id" in x.values else None
    earlier = before.attributes.get("channel_id")
    return None if channel == earlier else f"has channel_id {channel}, but its operand has {earlier}"


def _dot(x: Written) -> str | None:
    # Until 2025 a sparse operand brought its metadata along as an operand more; XLA minds none too many.
    wanted = 2 + (len(x.values["sparsity"].value) if "sparsity" in x.values else 0)
    return None if len(x.operands) >= wanted else f"takes {wanted} operands, not {len(x.operands)}"


def _scan(x: Written) -> str | None:
    carries, count = x.values["num_carries"].value, len(x.operands)
    return None if count >= carries else f"takes its {carries} carries as operands, not {count}"


CHECKS: dict[str, Check] = {
    "scan": _scan,
    "dot": _dot,
    "reduce": _even,
    "reduce-window": _reduce_window,
    "scatter": _scatter,
    "dynamic-slice": lambda x: _slice_operands(1, "takes at least one operand", x.operands),
    "dynamic-update-slice": lambda x: _slice_operands(2, "takes at least two operands", x.operands),
    "tuple": _tuple,
    "reshape": _same_count,
    "dynamic-reshape": _dynamic_reshape,
    "recv": _recv,
    "infeed": _recv,
    "conditional": _conditional,
    "broadcast": _broadcast,
    "custom-call": _custom_call,
    "send-done": _channel,
    "recv-done": _channel,
}
