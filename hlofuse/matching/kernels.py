"""The keys of kernels: equal for kernels that compute the same, and of whole modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from msgspec import Struct

from hlofuse.analysis.kernels import computed_in, inside, is_kernel
from hlofuse.ir import Computation, Dims, Instruction, Instructions, Module, grouped, unmatched, with_trait
from .key import Keys, Strictness, payload, result


class KernelKeys(Keys):
    """Keys of fusions by what is inside, and of others; `output_order`: whether that of results counts."""

    def __init__(self, strictness: Strictness = Strictness.PROGRAM, *, output_order: bool = True) -> None:
        super().__init__(strictness)
        self._output_order = output_order
        self._modules = dict[Module, ModuleKeys]()

    def module(self, module: Module) -> ModuleKeys:
        """The keys of every instruction outside fusions."""
        found = self._modules.get(module)
        if found is None:
            found = self._modules[module] = ModuleKeys(module)
            for computation in module.computation_post_order():
                if computation.fusion is None:
                    self._region(computation, found)
            regions = found.computations
            found.key = self.number(("module", regions[module.entry], tuple(sorted(regions.values()))))
        return found

    def kernel(self, kernel: Instruction) -> int:
        """A number for the kernel's computation from operands of these shapes."""
        if kernel.is_fusion:
            return self._alone(kernel)
        return self.number((self._alone_operation(kernel), tuple([o.shape.key for o in kernel.operands])))

    def _region(self, computation: Computation, module: ModuleKeys) -> None:
        keys = module.keys
        order = computation.post_order()
        for x in order:
            keys[x] = self._in_module(x, keys, module)
        # Everything in it counts, also what the root does not need. An element of a tuple counts where it
        # is used: XLA's texts write no line for it, nor tell two equal ones apart.
        written = [x for x in order if not x.is_get_tuple_element or x.is_root]
        content = tuple(sorted(keys[x] for x in written))
        module.computations[computation] = self.number(("computation", keys[computation.root], content))
        module.orders[computation] = written

    def _in_module(self, x: Instruction, keys: dict[Instruction, int], module: ModuleKeys) -> int:
        operands = tuple([keys[o] for o in x.operands])
        if x.is_fusion:
            return self._fusion(x, operands, module)
        if x.is_get_tuple_element:
            results = module.results.get(x.operand) if not self._output_order else None
            if results is not None and x.tuple_index < len(results):
                return self.number(("result", operands, results[x.tuple_index]))
            # Short texts write `%x#1` for it, with room for no more.
            attributes: Hashable = x.tuple_index
        else:
            attributes = self.attributes(x.attributes)
        called = tuple([module.computations.get(c, -1) for _, c in x.called])
        control = tuple(sorted(keys.get(p, -1) for p in x.control_predecessors))
        return self.number((x.opcode, x.shape.key, operands, called, payload(x), attributes, control))

    def _fusion(self, fusion: Instruction, operands: Dims, module: ModuleKeys) -> int:
        """A fusion is the operations inside it, its parameters being what it is called with."""
        body = fusion.fused_computation
        inner = {}
        content = []
        for x in body.post_order():
            if x.is_parameter:
                number = x.parameter_number
                inner[x] = operands[number] if number < len(operands) else -1
                continue
            inner[x] = self._in_module(x, inner, module)
            if x.opcode != "tuple" or x is not body.root:
                content.append(inner[x])
        root = body.root
        shape: Hashable = fusion.shape.key
        key: Hashable = inner.get(root, -1)
        if root.opcode == "tuple":
            results = tuple([inner[o] for o in root.operands])
            module.results[fusion] = results
            key = results if self._output_order else tuple(sorted(results))
            if not self._output_order:
                shape = "tuple"
        attributes = self.attributes(fusion.attributes)
        control = len(fusion.control_predecessors)
        return self.number(("fusion", shape, key, tuple(sorted(content)), attributes, control))

    def _alone(self, fusion: Instruction) -> int:
        """Parameters count in the order in which operations read them: their numbers play no part."""
        values = dict[Instruction, int]()
        parameters = 0
        for x in fusion.fused_computation.post_order():
            if x.is_parameter:
                key: Hashable = ("parameter", parameters, x.shape.key)
                parameters += 1
            elif x.is_fusion:
                key = (self._alone(x), tuple([values[o] for o in x.operands]))
            else:
                key = (self._alone_operation(x), tuple([values[o] for o in x.operands]))
            values[x] = self.number(key)
        root = values[fusion.fused_root]
        return self.number((self._alone_operation(fusion), fusion.operand_count, root))

    def _alone_operation(self, x: Instruction) -> Hashable:
        called = tuple([self.computation(c) for _, c in x.called]) if not x.is_fusion else ()
        return (x.opcode, result(x).key, self.attributes(x.attributes), payload(x), called)


class ModuleKeys(Struct, eq=False):
    module: Module
    key: int = -1
    keys: dict[Instruction, int] = {}
    computations: dict[Computation, int] = {}
    orders: dict[Computation, Instructions] = {}
    results: dict[Instruction, Dims] = {}  # Keys of the results of multi-output fusions

    def names(self) -> dict[int, list[str]]:
        return grouped((key, x.name) for x, key in self.keys.items() if x.is_fusion)

    def first_missing_in(self, other: ModuleKeys) -> Instruction | None:
        """The first instruction, operands before users, that has no equal in `other`. Kernels go first: a
        constant too many follows from a kernel that absorbed another one's."""
        order = (x for c in self.module.computation_post_order() for x in self.orders.get(c, ()))
        first = None
        for x in unmatched(((self.keys[x], x) for x in order), Counter(other.keys.values())):
            if is_kernel(x):
                return x
            first = first or x
        return first


_NO_WORK = with_trait("free")


def outline(kernel: Instruction) -> Hashable:
    """The loosest key: operations by opcode, and the elements of the results."""
    sizes = tuple(sorted(leaf.element_count for leaf in kernel.shape.leaf_shapes))
    if not kernel.is_fusion or not kernel.called:
        return kernel.opcode, sizes
    opcodes = Counter(x.opcode for x in computed_in(kernel) if x.opcode not in _NO_WORK)
    if opcodes.total() == 1:
        return next(iter(opcodes)), sizes  # wrapped alone
    return frozenset(opcodes.items()), sizes


def contents(kernel: Instruction) -> Hashable:
    """The kind of a fusion and its operations with their shapes, in any order."""
    operations = Counter((x.opcode, x.shape.text_without_layout) for x in inside(kernel))
    return kernel.fusion_kind, frozenset(operations.items())
