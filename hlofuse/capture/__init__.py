"""Captures the input and output of XLA's fusion passes for a program, without an accelerator."""

import tempfile
from pathlib import Path
from typing import Any

from hlofuse.ir import AnyPath, replace
from .ahead_of_time.compiling import PLATFORMS, is_array, partitions_of
from .capturing import capture_modules
from .folder import folder_name
from .model import Capture, CapturedModule, CaptureError, Destination, settled_destination


def capture(
    function: Any,
    *arguments: Any,
    target: str | None = None,
    device: str | None = None,
    topology: str | None = None,
    out: AnyPath | None = None,
    flags: str = "",
) -> Capture:
    """Compile a JAX function ahead of time and store the input and output of XLA's fusion passes.

    function: jitted or not. arguments: arrays or jax.ShapeDtypeStruct, of which only shape and type count, in
    any pytree; also a sharding over a mesh, abstract or of several devices, which divides the program.
    target: cpu (default), gpu with `device` (a name of `hlofuse devices` or a file) or tpu with `device`
    or `topology` (default v5e:2x2). out: the folder to write; default: a new temporary one, which is not
    removed. flags: further XLA_FLAGS.

    The result's `module().before` is a path for hlofuse.load. Raises `CaptureError` for a missing package or
    for XLA's refusal."""
    try:
        import jax
    except ImportError as error:
        raise CaptureError(
            f'hlofuse.capture needs jax: pip install ".[capture]" from a checkout ({error})'
        ) from None
    destination = settled_destination(target, device, topology)
    jitted = function if hasattr(function, "trace") else jax.jit(function)
    lowered = jitted.trace(*jax.tree.map(shape_only, arguments)).lower(
        lowering_platforms=(PLATFORMS[destination.target],)
    )
    module = lowered.compiler_ir("stablehlo").operation
    partitions = partitions_of(module)
    if partitions > 1:
        destination = replace(destination, mesh=((None, partitions),))
    text = module.get_asm(enable_debug_info=True, large_elements_limit=None)
    name = folder_name(getattr(function, "__name__", "function"))
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="hlofuse-capture-")) / name
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, f"{name}.mlir")
        file.write_text(text, encoding="utf-8")
        return capture_modules([(name, file)], destination, folder, flags=flags)


def shape_only(leaf: Any) -> Any:
    """The shape of an array, with a sharding independent of devices; other values unchanged."""
    import jax

    if not is_array(leaf):
        return leaf
    sharding: Any = getattr(leaf, "sharding", None)
    mesh: Any = getattr(sharding, "mesh", None)
    abstract_mesh = getattr(jax.sharding, "AbstractMesh", ())  # since JAX 0.4.36
    abstract = sharding if isinstance(mesh, abstract_mesh) else None
    if abstract is None and abstract_mesh and getattr(mesh, "size", 1) > 1:
        abstract = jax.sharding.NamedSharding(mesh.abstract_mesh, sharding.spec)
    weak_type = getattr(leaf, "weak_type", False)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=weak_type, sharding=abstract)
