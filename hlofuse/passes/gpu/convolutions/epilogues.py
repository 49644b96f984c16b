"""Epilogues of cuDNN convolutions: a factor, sums, an activation (`cudnn_fused_conv_rewriter.cc`)."""

from dataclasses import field
from typing import NamedTuple

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.backend_config import printed_number
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import Instruction, Module, Predicate, set_attribute, values
from hlofuse.passes.algebraic.context import broadcast_effective_constant
from hlofuse.passes.base import NotRepresentable, Pass, attempt, replaced
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.make import added, derived, zeros
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder
from .rewriter import BIAS_ACTIVATION, FORWARD, FORWARD_GRAPH, call_like, config_of, configure

_NARROWER = values("f16 s8")
_OF_GRAPHS = (9, 0)
"""cuDNN convolves floats of 8 bits on Hopper and later; on Ada its version decides, which no device has."""


class CudnnFusedConvRewriter(Pass):
    """`cudnn-fused-convolution-rewriter`, of convolutions of floats, whose results are not narrowed."""

    name = "cudnn-fused-convolution-rewriter"
    device: DeviceDescription = field(compare=False, repr=False)

    def run(self, module: Module, recorder: Recorder) -> bool:
        steps: tuple[Predicate, ...] = (_scale, _sum, _sum, _relu)
        first = (_read_narrow,) if self.device.compute_capability >= _OF_GRAPHS else ()
        changed = False
        for computation in module.non_fusion_computations():
            for step in (*first, *steps, *steps[1:]):
                for x in computation.post_order():
                    if x.computation is not None:
                        changed |= attempt(step, recorder)(x)
        return changed


_IN_GRAPH = values("abs add clamp compare convert divide maximum multiply reduce select")


def _read_narrow(element: Instruction) -> bool:
    """`F8GraphConv`: a convolution of widened floats of 8 bits reads them as they are. NotRepresentable where
    cuDNN might take over what scales an operand or reads the result."""
    if not element.is_get_tuple_element or element.tuple_index or not _is_call(element.operand):
        return False
    call = element.operand
    scaled = [o for x in call.operands[:2] if x.opcode in ("multiply", "divide") for o in x.operands]
    if any(_has_eight_bits(o.past("convert")) for o in scaled):
        raise NotRepresentable("a convolution of scaled 8-bit floats")
    operands = [o.past("convert") for o in call.operands[:2]]
    if not all(map(_has_eight_bits, operands)):
        return False
    if any(u.opcode in _IN_GRAPH for u in element.users):
        raise NotRepresentable("a convolution of 8-bit floats whose result is used at once")
    new = call_like(call, operands, FORWARD)
    set_attribute(new, "custom_call_target", f'"{FORWARD_GRAPH}"')
    element_type = element.element_type
    configure(new, {**config_of(call), "serialized_graph": f"{element.id}:[{element_type}]conv();"})
    return replaced(element, derived(new, "get-tuple-element", element.shape, [new], index="0"))


def _has_eight_bits(x: Instruction) -> bool:
    return x.element_type.startswith("f8")


class _Result(NamedTuple):
    """One operand reads a convolution's result; the other is something else."""

    call: Instruction
    element: Instruction
    other: Instruction


def _is_call(x: Instruction) -> bool:
    return custom_call_target(x) in (FORWARD, BIAS_ACTIVATION)


def _results(x: Instruction, *, call_read_once: bool) -> list[_Result]:
    found = []
    for element, other in (tuple(x.operands), tuple(reversed(x.operands))):
        if not element.is_get_tuple_element or element.tuple_index or not _read_once(element):
            continue
        call = element.operand
        if not _is_call(call) or _is_depthwise(call) or (call_read_once and not _read_once(call)):
            continue
        found.append(_Result(call, element, other))
    return found


def _read_once(x: Instruction) -> bool:
    return sum(o is x for user in x.users for o in user.operands) == 1


def _is_depthwise(call: Instruction) -> bool:
    groups = int(call.raw("feature_group_count") or 1)
    dimension = call.attributes["dim_labels"].input_feature_dimension
    return groups != 1 and call.operand.sizes[dimension] == groups


def _scale(multiply: Instruction) -> bool:
    """`FuseConvAlpha`."""
    if multiply.opcode != "multiply":
        return _check(multiply)
    for call, element, other in _results(multiply, call_read_once=False):
        factor = broadcast_effective_constant(other)
        config = config_of(call)
        if factor is None or config["conv_result_scale"] != 1:
            continue
        config["conv_result_scale"] = _number(factor)
        configure(_with_bias(call), config)
        return replaced(multiply, element)
    return False


def _check(x: Instruction) -> bool:
    """NotRepresentable if a result is narrowed, which cuDNN might do."""
    if x.opcode == "convert" and x.element_type in _NARROWER:
        source = x.operand
        if source.is_get_tuple_element and _is_call(source.operand):
            raise NotRepresentable("a convolution whose result is narrowed")
    return False


def _sum(add: Instruction) -> bool:
    """`FuseBiasOrSideInput`."""
    if add.opcode != "add":
        return False
    for call, element, addend in _results(add, call_read_once=True)[:1]:
        config = config_of(call)
        if config["activation_mode"] != "kNone":
            return False
        takes_bias = call.operand_count < 3 or _is_zero(call.operands[2])
        takes_side_input = call.operand_count < 4
        feature = call.attributes["dim_labels"].output_feature_dimension
        places = tuple(addend.dimensions) if addend.is_broadcast else None
        call = _with_bias(call)
        operands = list(call.operands)
        if takes_bias and places == (feature,):
            operands[2] = addend.operand
        elif takes_bias and places == ():
            shape = array(element.element_type, [element.sizes[feature]])
            operands[2] = added(add, "broadcast", shape, [addend.operand], dimensions="{}")
        elif takes_side_input:
            operands.append(addend)
            config["side_input_scale"] = 1
        else:
            return False
        new = call_like(call, operands, BIAS_ACTIVATION)
        configure(new, config)
        return replaced(add, derived(new, "get-tuple-element", add.shape, [new], index="0"))
    return False


def _relu(maximum: Instruction) -> bool:
    """`FuseRelu`."""
    if maximum.opcode != "maximum":
        return False
    for call, element, other in _results(maximum, call_read_once=True):
        config = config_of(call)
        if not _is_zero(other) or config["activation_mode"] != "kNone":
            continue
        config["activation_mode"] = "kRelu"
        configure(_with_bias(call), config)
        return replaced(maximum, element)
    return False


def _with_bias(call: Instruction) -> Instruction:
    """`EnsureIsConvBiasActivation`."""
    if call.attributes.get("custom_call_target") == BIAS_ACTIVATION:
        return call
    result = call.shape.tuple_shapes[0]
    features = result.dimensions[call.attributes["dim_labels"].output_feature_dimension]
    shape = array(result.element_type, [features])
    new = call_like(call, [*call.operands, zeros(call, shape)], BIAS_ACTIVATION)
    replaced(call, new)
    return new


def _is_zero(x: Instruction) -> bool:
    constant = broadcast_effective_constant(x)
    return constant is not None and scalar_of(constant) == 0


def _number(constant: Instruction) -> float:
    value = scalar_of(constant)
    if value is None or isinstance(value, complex):
        raise NotRepresentable("a factor of unknown value")
    return printed_number(float(value))
