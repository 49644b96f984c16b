"""Compiles a function or a module for devices that need not exist."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import compress, islice
from pathlib import Path
from typing import Any

from .devices import Devices, alone

PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}


def compile_function(
    name: str,
    function: Any,
    arguments: tuple[Any, ...],
    devices: Devices,
) -> None:
    """Compile a function for the shapes of `arguments`."""
    import jax

    if not hasattr(function, "trace"):
        is_filtered = hasattr(function, "lower") or any(map(callable, jax.tree.leaves(arguments)))
        function = _named(function, name)
        function, arguments = _jitted(function, arguments) if is_filtered else (jax.jit(function), arguments)
    with _axes(devices), _platform(devices):
        if devices.all:
            lowered = _lower(function, arguments, devices)
            module = lowered.compiler_ir("stablehlo")
            if not any(map(is_array, jax.tree.leaves(arguments))) or not _has_parameters(module):
                compile_module(module, devices)  # nothing tells jit where to go
                return
            if devices.target == "gpu":
                lowered._lowering.compile_args |= {"host_callbacks": ()}  # an absent GPU calls nothing
        else:
            lowered = function.lower(*arguments)
        lowered.compile()


def _has_parameters(module: Any) -> bool:
    """False where the program reads no argument, since jit drops unused ones."""
    from jax._src.lib.mlir import ir

    main = ir.SymbolTable(module.operation)["main"]
    return len(main.regions[0].blocks[0].arguments) > 0


def _axes(devices: Devices) -> AbstractContextManager[Any]:
    """The mesh whose axes the function may name."""
    import jax

    if not devices.is_named:
        return nullcontext()
    enter = getattr(jax, "set_mesh", None) or getattr(jax.sharding, "use_mesh", None)
    return enter(devices.mesh) if enter is not None else devices.mesh  # type: ignore[no-any-return]


@contextmanager
def _platform(devices: Devices) -> Iterator[None]:
    """JAX knows the platform of an absent GPU: a callback to Python asks for it."""
    if devices.target != "gpu":
        yield
        return
    from jax._src import xla_bridge

    found = xla_bridge.canonicalize_platform
    xla_bridge.canonicalize_platform = lambda name: "cuda" if name == "gpu" else found(name)
    try:
        yield
    finally:
        xla_bridge.canonicalize_platform = found


def _lower(
    jitted: Any,
    arguments: tuple[Any, ...],
    devices: Devices,
) -> Any:
    """The function lowered for the devices. On a mesh, arguments that nothing places stay open, as in a plain
    `jax.jit`; they are on every device where the program then names no mesh."""
    import jax

    def lower(is_open: bool) -> Any:
        placed = jax.tree.map(lambda leaf: _shape_with_sharding(leaf, devices, is_open), arguments)
        return jitted.trace(*placed).lower(lowering_platforms=(PLATFORMS[devices.target],))

    if devices.mesh is not None:
        with suppress(Exception):  # what is at fault is raised below
            lowered = lower(is_open=True)
            if partitions_of(lowered.compiler_ir("stablehlo").operation) == len(devices.all) > 1:
                return lowered
    try:
        return lower(is_open=False)
    except Exception:
        if devices.mesh is None:  # perhaps it asks which device it is traced for
            with suppress(Exception), _axes(alone(devices)):
                return lower(is_open=False)
        raise


def is_array(leaf: Any) -> bool:
    """True for an array, or the shape of one."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _shape_with_sharding(
    leaf: Any,
    devices: Devices,
    is_open: bool,
) -> Any:
    """The shape of an array on the devices; with `is_open` without a sharding that nothing gives it."""
    import jax

    if not is_array(leaf):
        return leaf
    where = leaf.sharding if isinstance(leaf, jax.ShapeDtypeStruct) else None
    if devices.mesh is None:
        where = jax.sharding.SingleDeviceSharding(devices.all[0])
    elif where is None and (hasattr(leaf, "axes") or not is_open):
        spec = jax.sharding.PartitionSpec(*getattr(leaf, "axes", ()))
        where = jax.sharding.NamedSharding(devices.mesh, spec)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where)


def _jitted(
    function: Any,
    arguments: tuple[Any, ...],
) -> tuple[Any, tuple[Any, ...]]:
    """The function with `jax.jit`, and its arguments without what is no array, which becomes part of the
    program as in `equinox.filter_jit`. What such a wrapper donates is donated."""
    import jax

    def arrays(values: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf if is_array(leaf) else None, values)

    @functools.wraps(function, updated=())
    def entry(*given: Any) -> Any:
        rest = iter(jax.tree.leaves(given))
        return arrays(function(*jax.tree.map(lambda x: next(rest) if is_array(x) else x, arguments)))

    taken = arrays(arguments)
    program = jax.make_jaxpr(entry)(*taken).jaxpr
    donated = set[int]()
    for call in program.eqns:
        donated.update(map(id, compress(call.invars, call.params.get("donated_invars", ()))))
    inputs = map(id, program.invars)
    sizes = [len(jax.tree.leaves(argument)) for argument in taken]
    whole = [n for n, size in enumerate(sizes) if donated.issuperset([*islice(inputs, size)])]
    return jax.jit(entry, donate_argnums=whole), taken


def _named(function: Any, name: str) -> Any:
    if getattr(function, "__name__", None) == name:
        return function

    def entry(*arguments: Any) -> Any:
        return function(*arguments)

    entry.__name__ = entry.__qualname__ = name
    return entry


def read_module(path: Path) -> Any:
    """StableHLO (text or bytecode), HLO text or an HLO proto, as an MLIR module."""
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    data: Any = path.read_bytes()
    if path.suffix == ".hlo":
        reader = getattr(xla_client, "hlo", xla_client._xla)
        data = reader.hlo_module_from_text(data.decode()).as_serialized_hlo_module_proto()
    if path.suffix in (".hlo", ".pb"):
        convert = getattr(xla_client._xla.mlir, "hlo_to_stablehlo", _hlo_to_mlir)
        data = convert(data)
    with mlir.make_ir_context() as context:
        if path.suffix == ".mlirbc" and b"StableHLO" in data[:64]:  # a portable artifact
            return xla_client._xla.mlir.deserialize_portable_artifact(data, context)
        return ir.Module.parse(data)


def _hlo_to_mlir(proto: bytes) -> Any:
    """The conversion before jaxlib 0.6."""
    from jax._src.lib import xla_client

    computation = xla_client.XlaComputation(proto)
    return xla_client._xla.mlir.xla_computation_to_mlir_module(computation)


def partitions_of(module: Any) -> int:
    """The number of devices over which an MLIR module is divided."""
    if "mhlo.num_partitions" not in module.attributes:
        return 1
    return int(str(module.attributes["mhlo.num_partitions"]).partition(" ")[0])


def compile_module(module: Any, devices: Devices) -> None:
    """Compile a module for one device, or in one partition for each device of the mesh."""
    import jax
    import numpy
    from jax._src import compiler
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    here = devices.all if devices.mesh is not None else (devices.all or jax.devices("cpu"))[:1]
    partitions = partitions_of(module.operation)
    if partitions > len(here):
        raise ValueError(f"the module has {partitions} partitions; give --mesh {partitions}")
    backend = here[0].client
    options = compiler.get_compile_options(
        num_replicas=1,
        num_partitions=len(here),
        device_assignment=numpy.arange(len(here)).reshape(1, -1),
        backend=backend,
    )
    # The client of a topology cannot run what it compiles: JAX knows how either is called.
    names = ("backend_compile_and_load", "backend_compile")
    compile_it = next(getattr(compiler, name) for name in names if hasattr(compiler, name))
    given = {
        "backend": backend,
        "module": module,
        "executable_devices": xla_client.DeviceList(tuple(here)),
        "options": options,
        "host_callbacks": [],
    }
    with module.context:
        if "sym_name" not in module.operation.attributes:  # JAX reads it
            module.operation.attributes["sym_name"] = ir.StringAttr.get("main")
        compile_it(**{name: given[name] for name in inspect.signature(compile_it).parameters})
