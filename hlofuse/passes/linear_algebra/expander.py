"""Operations that become calls of what is written once for each shape (`op_expander_pass.cc`)."""

import re
from collections.abc import Sequence
from typing import ClassVar

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.builder import Builder, Op
from hlofuse.passes.common.rewriting import NotRepresentable, expand_each, substituted
from hlofuse.trace import Recorder

_TYPES = frozenset({"f16", "bf16", "f32", "f64", "c64", "c128"})


class Expander(Pass):
    kinds: ClassVar[tuple[str, ...]]
    """Opcodes and targets of custom calls that are expanded."""
    names: ClassVar = ("a", "b")
    """Of the parameters."""

    def key(self, x: Instruction, kind: str) -> list[str]:
        """What the computation depends on, as its name says it."""
        return [kind, *map(text_of, x.operands)]

    def root(self, x: Instruction, operands: list[Op]) -> Op:
        """The result; NotRepresentable for what XLA refuses."""
        raise NotImplementedError

    def run(self, module: Module, recorder: Recorder) -> bool:
        written: dict[str, Computation] = {}

        def expand(x: Instruction) -> None:
            if not 0 < len(x.operands) <= len(self.names):
                raise NotRepresentable("a call of other operands")
            of = x.operands[0].shape
            if of.element_type not in _TYPES or of.rank < 2:
                raise NotRepresentable("matrices of this type")
            name = "_".join(self.key(x, _kind(x)))
            if name not in written:
                b = Builder(module, re.sub(r"[^\w.-]", "_", f"xla.{name}"))
                operands = [b.parameter(k, o.shape, self.names[k]) for k, o in enumerate(x.operands)]
                written[name] = b.build(self.root(x, operands))
            called = [("to_apply", written[name])]
            substituted(x, make.added(x, "call", x.shape, x.operands, called=called))

        computations = module.non_fusion_computations()
        found = [i for c in computations for i in c.post_order() if _kind(i) in self.kinds]
        return expand_each(found, expand, recorder)


def _kind(x: Instruction) -> str:
    return custom_call_target(x) or x.opcode.replace("-", "_")


def text_of(x: Instruction) -> str:
    """The shape of `x` without a layout."""
    return f"{x.shape.element_type}[{','.join(map(str, x.shape.dimensions))}]"


def require(x: Instruction, *results: tuple[str, Sequence[int]]) -> None:
    """NotRepresentable unless the results of a call have these types and sizes."""
    shapes = [(s.element_type, s.dimensions) for s in x.shape.tuple_shapes or (x.shape,)]
    if shapes != [(of, tuple(sizes)) for of, sizes in results]:
        raise NotRepresentable("a call with results of other shapes")


def chosen(x: Instruction, attribute: str, yes: str, no: str) -> str:
    return yes if x.attributes.raw(attribute) == "true" else no
