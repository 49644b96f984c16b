"""Programs that are divided over devices by hand (`jax.shard_map`): the part that one device runs.

Shardings are not propagated here and nothing is partitioned. Where every array goes into a manual computation
and comes out of it with the sharding that it has, XLA's partitioner only takes each device's part.
"""

import re
from math import prod

from hlofuse.analysis.custom_calls import SHARDY, custom_call_target, hands_on, has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.calls import inline
from hlofuse.passes.common.shapes import with_layout

_Sharding = tuple[tuple[str, ...], ...]
"""The axes of the mesh that divide each dimension; a part of an axis is `axis:size`."""
_CROSSINGS = (f"{SHARDY}GlobalToLocalShape", f"{SHARDY}LocalToGlobalShape")
_SHARDING = re.compile(r"<(?:@[^,<>]+|mesh<[^<>]*>), \[([^\]]*)\]")
_AXIS = re.compile(r'"([^"]+)"(?::\(\d+\)(\d+))?')
_SIZE = re.compile(r'"([^"]+)"=(\d+)')
_PER_DEVICE = with_trait("collective") | {"call", "conditional", "partition-id", "replica-id", "while"}


class ManualPartition:
    """The shardings of an entry computation; `is_complete` is False where only the partitioner knows them."""

    def __init__(self, module: Module) -> None:
        self._module = module
        meshes = (module.attributes.raw("frontend_attributes") or "").partition("xla.sdy.meshes=")[2]
        self._sizes = {name: int(size) for name, size in _SIZE.findall(meshes)}
        self._shardings: dict[Instruction, list[_Sharding] | None] = {}
        """Of each result outside of manual computations; None inside."""
        self.is_complete = self._find_crossings() and all(map(self._visit, module.entry.post_order()))

    def _find_crossings(self) -> bool:
        crossings = [x for x in self._module.instructions() if custom_call_target(x) in _CROSSINGS]
        return bool(crossings) and all(x.computation is self._module.entry for x in crossings)

    def _visit(self, x: Instruction) -> bool:
        """Note the shardings of `x`; False where only the partitioner knows what becomes of it."""
        given = [self._shardings[o] for o in x.operands]
        inside = bool(given) and all(s is None for s in given)
        outer = [s for shardings in given for s in shardings or ()]
        target = custom_call_target(x)
        found: list[_Sharding] | None = outer
        if x.opcode == "parameter":
            settled = x.shape.is_array
            found = _shardings(x, "sharding")
        elif x.opcode == "get-tuple-element":
            settled = True
            found = None if inside else [outer[x.tuple_index]]
        elif target in _CROSSINGS:
            enters = target == _CROSSINGS[0]
            settled = outer == _shardings(x, "in_shardings") if enters else inside
            settled &= set(re.findall(r'"([^"]+)"', _attribute(x, "manual_axes"))) == self._sizes.keys()
            found = None if enters else _shardings(x, "out_shardings")
        elif x.opcode == "call" and inside:
            settled, found = True, None
        elif x.opcode == "tuple":
            settled = None not in given
        elif hands_on(x):
            settled = not inside and (_shardings(x, "sharding") or outer) == outer
        else:  # every device computes the whole if each has all that is read
            divided = x.opcode in _PER_DEVICE or has_side_effect(x) or None in given or any(map(any, outer))
            settled = x.shape.is_array and not divided
            found = [((),) * x.shape.rank]
        self._shardings[x] = found
        return settled and (found is None or self._part(x.shape, found) is not None)

    def _part(self, shape: Shape, shardings: list[_Sharding]) -> Shape | None:
        """The shape on one device; None where an array is not divided evenly."""
        if shape.is_tuple:
            parts = [self._part(s, [g]) for s, g in zip(shape.tuple_shapes, shardings, strict=False)]
            complete = [p for p in parts if p is not None]
            return Shape.tuple_of(complete) if len(complete) == len(shape.tuple_shapes) else None
        if len(shardings) != 1 or len(shardings[0]) != shape.rank:
            return None
        counts = [prod(map(self._count, axes)) for axes in shardings[0]]
        if any(n == 0 or d % n for d, n in zip(shape.dimensions, counts, strict=True)):
            return None
        sizes = [d // n for d, n in zip(shape.dimensions, counts, strict=True)]
        return with_layout(shape.element_type, sizes, shape.minor_to_major)

    def _count(self, axis: str) -> int:
        name, _, part = axis.partition(":")
        return int(part) if part else self._sizes.get(name, 0)

    def apply(self) -> None:
        """Have the module compute one device's part."""
        entry = self._module.entry
        for x in entry.post_order():
            shardings = self._shardings[x]
            if shardings is not None and (part := self._part(x.shape, shardings)) is not None:
                x.shape = part
            if x.opcode == "call":
                inline(x)
        for x in entry.post_order():
            if custom_call_target(x) in _CROSSINGS:
                elements = [u for u in x.users if u.opcode == "get-tuple-element"] if x.shape.is_tuple else []
                for element in elements:
                    element.replace_all_uses_with(x.operands[element.tuple_index])
                    entry.remove_instruction(element)
                if not x.shape.is_tuple:
                    x.replace_all_uses_with(x.operands[0])
                if not x.users:
                    entry.remove_instruction(x)
        parameters = ", ".join(str(p.shape) for p in entry.parameters)
        layout = f"{{({parameters})->{entry.root.shape}}}"
        self._module.attributes = self._module.attributes.updated(entry_computation_layout=layout)


def _attribute(x: Instruction, name: str) -> str:
    text: str = (x.attributes.get("frontend_attributes") or {}).get(f"xla.sdy.{name}", "")
    return text


def _shardings(x: Instruction, name: str) -> list[_Sharding]:
    return [
        tuple(
            tuple(f"{axis}:{part}" if part else axis for axis, part in _AXIS.findall(dimension))
            for dimension in re.findall(r"\{([^}]*)\}", dimensions)
        )
        for dimensions in _SHARDING.findall(_attribute(x, name))
    ]
