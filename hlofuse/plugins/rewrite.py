"""Putting one custom fusion in the place of a match."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.removing import remove_with_unused_operands
from hlofuse.plugins.pattern.find import Match
from hlofuse.plugins.pattern.values import Value, entered

_KIND = "__custom_fusion"  # as XLA calls what a kernel of one's own runs


def custom_kernel_name(instruction: Instruction) -> str | None:
    """The kernel that runs a custom fusion, as its backend config says; None for any other instruction."""
    if instruction.fusion_kind != "kCustom":
        return None
    try:
        config = json.loads(instruction.attributes.raw("backend_config") or "{}")["fusion_backend_config"]
        return str(config["custom_fusion_config"]["name"]) if config["kind"] == _KIND else None
    except (ValueError, KeyError, TypeError):
        return None


def replace_match(match: Match, kernel: str) -> tuple[Instruction, list[str]]:
    """The fusion that takes the place of what was matched, its operands the pattern's, in order.

    Also the names of what went because only the match needed it: constants and the like, copied into it.
    """
    root = match.root
    computation = root.computation
    assert computation is not None
    module = computation.module
    assert module is not None
    body = _body(match, f"{kernel}_computation")
    module.add_computation(body)
    config = {"kind": _KIND, "custom_fusion_config": {"name": kernel, "kernel_index": 0}}
    raw = {"kind": "kCustom", "calls": f"%{body.name}"}
    for name in ("frontend_attributes", "metadata"):
        value = root.attributes.raw(name)
        if value is not None:
            raw[name] = value
    raw["backend_config"] = json.dumps({"fusion_backend_config": config}, separators=(",", ":"))
    fusion = Instruction(
        kernel,
        root.shape,
        "fusion",
        match.operands.values(),
        Attributes(raw=raw),
        called=[("calls", body)],
    )
    computation.add_instruction(fusion)
    root.replace_all_uses_with(fusion)
    inside_names = {x.name for x in match.inside}
    return fusion, [name for name in _remove(match) if name not in inside_names]


def _body(match: Match, name: str) -> Computation:
    """The operations of the match, those of fusions one by one, over a parameter for each operand."""
    body = Computation(name)
    built: dict[Value, Instruction] = {}
    for number, (hole, operand) in enumerate(match.operands.items()):
        parameter = Instruction(hole, operand.shape, "parameter", payload=str(number))
        body.append_parsed(parameter)
        built.setdefault(Value(operand), parameter)
    start = _inner(Value(match.root), built)
    stack = [start]
    while stack:
        value = stack[-1]
        if value in built:
            stack.pop()
            continue
        operands = [_inner(o, built) for o in value.operands]
        missing = [o for o in operands if o not in built]
        if missing:
            stack += reversed(missing)
            continue
        clone = value.instruction.clone([built[o] for o in operands])
        clone.attributes = clone.attributes.without("control-predecessors")
        body.append_parsed(clone)
        built[value] = clone
        stack.pop()
    body.root = built[start]
    return body


def _inner(value: Value, built: dict[Value, Instruction]) -> Value:
    """The operation that computes a value, inside a fusion if it is one that is taken in."""
    while value not in built:
        inside = entered(value)
        if inside is None:
            break
        value = inside
    return value


def _remove(match: Match) -> list[str]:
    """Take out what was matched, what only that needed, the bodies of its fusions; the names."""
    bodies = [c for x in match.inside if x.opcode == "fusion" for c in x.called_computations]
    removed = remove_with_unused_operands(match.root, has_side_effect)
    for body in bodies:
        if body.module is not None and not body.callers:
            body.module.remove_computation(body)
    return removed


# Calling a package's own functions: what goes wrong in them is said as the package's.

R = TypeVar("R")


def call_plugin(code: str, what: str, function: Callable[..., R], *arguments: Any) -> R:
    """`function(*arguments)`; HlofuseError that names the rule and the function for any exception."""
    try:
        return function(*arguments)
    except HlofuseError:
        raise
    except Exception as error:
        raise HlofuseError(
            f"{what} of rule {code}, which is not XLA's, failed: {type(error).__name__}: {error}"
        ) from error
