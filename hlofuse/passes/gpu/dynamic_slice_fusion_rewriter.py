"""Products and FFI calls that read, or write, slices in place
(`xla/backends/gpu/transforms/dynamic_slice_fusion_rewriter_v2.cc`)."""

from collections.abc import Sequence
from typing import NamedTuple

from hlofuse.analysis.components import depends_on
from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.analysis.slice_copies import has_byte_strides, has_constant_offset, is_contiguous_slice
from hlofuse.cost.gpu.backend_config import gpu_config_text
from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.fusing import clone_of, computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.ir.shape import INTEGER_TYPES, Shape
from hlofuse.passes.base import Pass, any_change
from hlofuse.passes.common import make
from hlofuse.passes.gpu.cublas import calls
from hlofuse.trace import Recorder

_ALIGNMENT = 256
"""`kXlaAllocatedBufferAlignBytes`."""
_NO_OPS = frozenset({"bitcast", "get-tuple-element"})
_CONFIG = gpu_config_text(
    "fusion_backend_config",
    {
        "kind": "__custom_fusion",
        "custom_fusion_config": {"name": "dynamic_slice_fusion", "kernel_index": 0},
    },
)


class _Result(NamedTuple):
    number: int
    path: list[Instruction]
    """From the call to the write, both left out."""
    write: Instruction | None


class DynamicSliceFusionRewriter(Pass):
    """`dynamic-slice-fusion-rewriter-v2`: a call with its slices becomes a custom fusion."""

    name = "dynamic-slice-fusion-rewriter-v2"

    def run(self, module: Module, recorder: Recorder) -> bool:
        heroes = [i for c in module.non_fusion_computations() for i in c if _may_be_hero(i)]
        return any_change(map(_rewrite, heroes))


def _may_be_hero(x: Instruction) -> bool:
    """`HasSupportedShapes`, and what `RunDynamicSliceFusionPasses` (`xla/service/gpu/gpu_compiler.cc`) asks.

    Of an FFI call that also is that its target is registered, which no module tells.
    """
    if x.opcode != "custom-call":
        return False
    if calls.is_call(x):
        if calls.config_of(x).get("epilogue") != "DEFAULT":
            return False
    elif x.attributes.raw("api_version") != "API_VERSION_TYPED_FFI":
        return False
    return not any(shape.is_tuple for shape in (*(o.shape for o in x.operands), *x.shape.tuple_shapes))


def _rewrite(hero: Instruction) -> bool:
    """`RewriteHero`."""
    reads = [path for o in hero.operands if (path := _read_slice(o))]
    results = _results(hero)
    if not reads and all(r.write is None for r in results):
        return False
    plan = _Plan(hero, reads, results)
    if _has_unroutable_users(hero, plan.inputs):
        return False
    fusion = plan.create_fusion()
    _reroute(hero, fusion, results)
    old = [r.write or (r.path[-1] if r.path else None) for r in results]
    if len(results) == 1:
        _replace(old[0] or hero, fusion)
        return True
    for number, was in enumerate(old):
        element = _element(fusion, number)
        if was is not None:
            _replace(was, element)
    if not any(old):
        _replace(hero, fusion)
    return True


def _replace(old: Instruction, new: Instruction) -> None:
    replace_instruction(old, new, has_side_effect)


def _read_slice(operand: Instruction) -> list[Instruction]:
    """The slice that is read and what lies between it and the call (`ResolveSlicedParameter`)."""
    path = [operand]
    while path[-1].opcode in _NO_OPS:
        path.append(path[-1].operands[0])
    slice_ = path[-1]
    is_static = slice_.opcode == "slice" or (slice_.opcode == "dynamic-slice" and has_constant_offset(slice_))
    return path[::-1] if is_static and _is_aligned(slice_, slice_.shape) else []


def _is_aligned(slice_: Instruction, part: Shape) -> bool:
    """`IsAlignedSlice`."""
    return is_contiguous_slice(slice_) and has_byte_strides(part) and part.byte_size % _ALIGNMENT == 0


def _written_slice(user: Instruction) -> _Result | None:
    """`ResolveSlicedResult`."""
    path = []
    while user.opcode in _NO_OPS:
        if len(user.users) != 1:
            return None
        path.append(user)
        user = user.users[0]
    if user.opcode != "dynamic-update-slice" or not has_constant_offset(user):
        return None
    root = computation_of(user).root
    in_result = user is root or (root.opcode == "tuple" and user in root.operands)
    return _Result(0, path, user) if in_result and _is_aligned(user, user.operands[1].shape) else None


def _results(hero: Instruction) -> list[_Result]:
    """`ResolveSlicedResults`."""
    if not hero.shape.is_tuple:
        return [r for user in hero.users if (r := _written_slice(user))][:1]
    results = []
    for number in range(len(hero.shape.tuple_shapes)):
        element = _found_element(hero, number)
        path = [] if element is None else [element]
        users = () if element is None else element.users
        written = next((r for user in users if (r := _written_slice(user))), None)
        if written is not None:
            results.append(_Result(number, path + written.path, written.write))
        else:
            results.append(_Result(number, path, None))
    return results


def _found_element(x: Instruction, number: int) -> Instruction | None:
    return next((u for u in x.users if u.opcode == "get-tuple-element" and u.tuple_index == number), None)


def _element(x: Instruction, number: int) -> Instruction:
    """`GetOrCreateGte`."""
    if (found := _found_element(x, number)) is not None:
        return found
    return make.added(x, "get-tuple-element", x.shape.tuple_shapes[number], [x], index=str(number))


class _Plan:
    """Instructions and inputs of the fusion (`BuildFusionPlan`)."""

    def __init__(
        self, hero: Instruction, reads: Sequence[list[Instruction]], results: Sequence[_Result]
    ) -> None:
        self._hero, self._results = hero, results
        self._inside: dict[Instruction, None] = {}
        self._offsets: set[Instruction] = set()
        paths: list[Instruction] = []
        for path in reads:
            if path[0].opcode == "dynamic-slice":
                self._add_offsets(path[0].operands[1:])
            paths += path
            self._inside |= dict.fromkeys(path)
        paths.append(hero)
        self._inside[hero] = None
        for result in results:
            paths += result.path
            self._inside |= dict.fromkeys(result.path)
            if result.write is not None:
                self._add_offsets(result.write.operands[2:])
                paths.append(result.write)
                self._inside[result.write] = None
        self._inside = dict.fromkeys(self._sunk_constants()) | self._inside
        self.inputs = list(self._inputs_of(paths))

    def _add_offsets(self, offsets: Sequence[Instruction]) -> None:
        """`AddOffsetExpressionInstructions`."""
        for x in offsets:
            if x not in self._inside and x not in self._offsets and _computes_offset(x):
                self._offsets.add(x)
                self._add_offsets(x.operands)
                self._inside[x] = None

    def _sunk_constants(self) -> list[Instruction]:
        """Constants that only offsets are made of."""
        sunk: dict[Instruction, None] = {}
        inside: set[Instruction] = set()
        for x in self._inside:
            first = {"dynamic-slice": 1, "dynamic-update-slice": 2}.get(x.opcode, len(x.operands))
            first = 0 if x in self._offsets else first
            inside.update(o for o in x.operands[:first] if o.opcode == "constant")
            sunk |= dict.fromkeys(o for o in x.operands[first:] if o.opcode == "constant")
        return [x for x in sunk if x not in inside]

    def _inputs_of(self, paths: Sequence[Instruction]) -> dict[Instruction, None]:
        inputs: dict[Instruction, None] = {}
        seen = set()
        for path in paths:
            pending = path.operands[::-1]
            while pending:
                x = pending.pop()
                if x not in self._inside:
                    inputs[x] = None
                elif x in self._offsets and x not in seen:
                    seen.add(x)
                    pending += x.operands[::-1]
        return inputs

    def create_fusion(self) -> Instruction:
        """Create the fusion in the call's computation, with its body (`CreateFusionBody`)."""
        body = Computation("dynamic-slice-fusion")
        clones: dict[Instruction, Instruction] = {}

        def add(new: Instruction) -> Instruction:
            body.append_parsed(new)
            return new

        for number, x in enumerate(self.inputs):
            clones[x] = add(Instruction(f"p{number}", x.shape, "parameter", payload=str(number)))
        for x in self._inside:
            clones[x] = add(clone_of(x, [clones[o] for o in x.operands]))
        body.root = clones[next(reversed(self._inside))]
        if len(self._results) > 1:
            call = clones[self._hero]
            elements = []
            for result in self._results:
                last = result.write or (result.path[-1] if result.path else None)
                if last is not None:
                    elements.append(clones[last])
                else:
                    index = Attributes(raw={"index": str(result.number)})
                    shape = call.shape.tuple_shapes[result.number]
                    name = "get-tuple-element"
                    elements.append(add(Instruction(name, shape, name, [call], index)))
            shape = Shape.tuple_of([e.shape for e in elements])
            body.root = add(Instruction("tuple", shape, "tuple", elements))
        computation = computation_of(self._hero)
        module_of(computation).add_computation(body)
        raw = {"kind": "kCustom", "calls": f"%{body.name}", "backend_config": _CONFIG}
        return computation.add_instruction(
            Instruction(
                "dynamic_slice_fusion",
                body.root.shape,
                "fusion",
                self.inputs,
                Attributes(raw=raw),
                called=[("calls", body)],
            )
        )


def _computes_offset(x: Instruction) -> bool:
    """`DynamicSliceFusion::Offset::IsExpr`, leaves left out."""
    if x.opcode in ("add", "subtract", "multiply"):
        return _is_scalar(x, INTEGER_TYPES)
    if x.opcode == "compare":
        return all(_is_scalar(o, INTEGER_TYPES) for o in x.operands)
    return x.opcode == "select" and _is_scalar(x, INTEGER_TYPES | {"pred"})


def _is_scalar(x: Instruction, types: frozenset[str]) -> bool:
    return x.shape.is_array and not x.shape.rank and x.shape.element_type in types


def _has_unroutable_users(hero: Instruction, inputs: Sequence[Instruction]) -> bool:
    """True if anything else needs the tuple, or an input of the fusion comes from the call."""
    heads = hero.users if hero.shape.is_tuple else [hero]
    if hero.shape.is_tuple and any(u.opcode != "get-tuple-element" for u in hero.users):
        return True
    return any(depends_on(x, head) for head in heads for x in inputs)


def _reroute(hero: Instruction, fusion: Instruction, results: Sequence[_Result]) -> None:
    """Whoever reads a written piece otherwise reads it from the fusion (`RerouteExternalUsers`)."""
    if hero.shape.is_tuple:
        canonical = {r.number: r.path[0] for r in results if r.path}
        for element in list(hero.users):
            inside = canonical.setdefault(element.tuple_index, element)
            if inside is not element:
                element.replace_all_uses_with(inside)
                computation_of(element).remove_instruction(element)
    for result in results:
        if result.write is None:
            continue
        head, *rest = result.path if hero.shape.is_tuple else [hero, *result.path]
        others = [u for u in head.users if u is not (rest[0] if rest else result.write)]
        if not others:
            continue
        slot = _element(fusion, result.number) if fusion.shape.is_tuple else fusion
        part = result.write.operands[1].shape
        value = make.added(
            fusion,
            "dynamic-slice",
            part,
            [slot, *result.write.operands[2:]],
            dynamic_slice_sizes=make.numbers(part.dimensions),
        )
        if head.shape != part:
            value = make.added(fusion, "bitcast", head.shape, [value])
        for user in others:
            head.replace_use_with(user, value)
