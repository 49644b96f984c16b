"""The backend that a module was compiled for, from what stands in it."""

import re
from functools import cache

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.format import printable
from hlofuse.ir import Instruction, Json, Module, packaged
from hlofuse.pipelines.identity import Fact

_GPU_FUSION = re.compile(r"(?:loop|input)(?:_\w+)?_fusion(?:[._]\d+)*")
"""XLA:GPU's `rename_fusions` names fusions by their emitter; no other backend does."""
_GPU_RENAMED = re.compile(r".*\.\d+\.\d+")
"""XLA:GPU gives every instruction a suffix before priority fusion, from 0.6 on."""


@cache
def marks() -> dict[str, Json]:
    """`backend_marks.toml`: prefixes of `calls`, for each platform of GPUs too, `configs`, and `files`."""
    found = packaged(__file__, "backend_marks")
    for table in ("calls", "platforms"):
        found[table] = {name: tuple(prefixes) for name, prefixes in found[table].items()}
    found["calls"]["gpu"] = sum(found["platforms"].values(), found["calls"]["gpu"])
    return found


def backend_of(module: Module) -> Fact | None:
    """The backend, from layouts, calls, configs or names of the module, cached; None without evidence."""
    if "backend" not in module.findings:
        module.findings["backend"] = _look_through(module)
    found: Fact | None = module.findings["backend"]
    return found


def platform_of(module: Module) -> Fact | None:
    """`ROCM` or `CUDA`, from the first call of a library that only such GPUs have; None without one."""
    for i in module.instructions():
        call = custom_call_target(i)
        for platform, prefixes in marks()["platforms"].items() if call else ():
            if call.lower().startswith(prefixes):
                return Fact(platform, "text", f"calls {printable(call)}")
    return None


def _look_through(module: Module) -> Fact | None:
    named = None
    for i in module.instructions():
        found = _instruction_backend(i)
        if found is not None:
            return found
        if named is None:
            named = _target_of_name(i)
    if named is not None:
        return named
    if "neff_" in str(module.attributes.raw("frontend_attributes")):
        return Fact("neuron", "text", "it has Neuron frontend attributes")
    if "T(" in str(module.attributes.raw("entry_computation_layout")):
        return Fact("tpu", "text", "the entry has tiled layouts")
    return None


def _instruction_backend(i: Instruction) -> Fact | None:
    name = printable(i.name)
    layouts = (leaf.layout for leaf in i.shape.leaf_shapes)
    if any(layout is not None and "T(" in str(layout) for layout in layouts):
        return Fact("tpu", "text", f"{name} has a tiled layout, {printable(str(i.shape)[:60])}")
    if i.opcode == "custom-call":
        call = custom_call_target(i)
        for backend, prefixes in marks()["calls"].items():
            if call.lower().startswith(prefixes):
                return Fact(backend, "text", f"calls {printable(call)}")
    elif i.is_parameter:
        if "neff_" in (i.raw("frontend_attributes") or ""):
            return Fact("neuron", "text", f"{name} has frontend attributes of Neuron")
        return None
    config = i.raw("backend_config")
    if config:
        for backend, keys in marks()["configs"].items():
            if any(key in config for key in keys):
                return Fact(backend, "text", f"{name} has the backend_config of a {backend.upper()}")
    if i.fusion_kind == "kInput":
        return Fact("gpu", "text", f"{name} has kind kInput, which only XLA:GPU creates")
    return None


def _target_of_name(i: Instruction) -> Fact | None:
    if i.is_fusion and _GPU_FUSION.fullmatch(i.name):
        return Fact("gpu", "text", f"fusion name {printable(i.name)} is XLA:GPU's")
    if i.opcode not in ("parameter", "constant") and _GPU_RENAMED.fullmatch(i.name):
        return Fact("gpu", "text", f"operation name {printable(i.name)} is XLA:GPU's")
    return None
