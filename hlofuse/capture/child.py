"""Runs in a process of its own, with the user's JAX: compile ahead of time and leave XLA's dumps.

    child.py REQUEST.json

Stands alone (hlofuse itself need not be installed beside that JAX): the standard library and jax only.
XLA reads its flags once a process, which is why this is one. The answer, a JSON file named in the request,
tells the versions, what could not be compiled, and what is missing.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MISSING, PROGRAM = "missing", "program"
_PLATFORM = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}


class Problem(Exception):
    """Why nothing was compiled: `kind` says what the parent should make of it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path[0] = os.getcwd()  # the user's modules, not this file's neighbours
    answer: dict[str, Any] = {"errors": {}, "compiled": []}
    try:
        _compile_all(request, answer)
    except Problem as problem:
        answer["problem"] = {"kind": problem.kind, "message": str(problem)}
    _write(request, answer)
    _end()


def _end() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # some plugins do not survive their own end


def _write(request: dict[str, Any], answer: dict[str, Any]) -> None:
    """XLA may abort at any program: what is known until then must be there, and whole."""
    path = Path(request["answer"])
    part = path.with_suffix(".part")
    part.write_text(json.dumps(answer), encoding="utf-8")
    part.replace(path)


def _compile_all(request: dict[str, Any], answer: dict[str, Any]) -> None:
    answer["flags"] = _add_flags(request.get("flags_of_releases", []))
    _find_nvcc()
    try:
        import jax
    except ImportError as error:
        raise Problem(MISSING, f"jax ({error})") from None
    import jaxlib

    answer["versions"] = {"python": sys.version.split()[0], "jax": jax.__version__}
    answer["versions"]["jaxlib"] = getattr(jaxlib, "__version__", "unknown")
    device = _device(request, answer)
    modules = request.get("modules")
    todo: list[tuple[str, Any]] = (
        [(m["name"], m["path"]) for m in modules] if modules else _functions(request)
    )
    answer["names"] = [name for name, _ in todo]
    if "alone" in request:
        todo = todo[request["alone"] :][:1]
    for name, program in todo:
        if name in request.get("done", ()):
            continue
        answer["started"] = name
        _write(request, answer)
        watch = _Watch(request, {**answer, "compiled": [*answer["compiled"], name]})
        try:
            if modules:
                _compile_module(_read_module(Path(program)), device, watch.begin)
            else:
                function, arguments = _resolved(program)
                _compile_function(name, function, arguments, device, request["target"], watch.begin)
            answer["compiled"].append(name)
        except Exception as error:  # what the compiler refuses late has left its dumps
            watch.end_if_past()
            answer["errors"][name] = f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"


class _Watch:
    """Ends this process, with an answer, once XLA is past the passes that are wanted: when it has begun the
    pipeline that the request names as `until`. By then every file ahead of it is whole, for one thread writes
    them in order. Does nothing where the request names none.
    """

    def __init__(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        self.request, self.answer = request, answer
        self.lock = threading.Lock()
        self.names: set[str] = set()
        self.name = re.compile(rf"\.\d+\.{re.escape(request.get('until', ''))}\.")

    def begin(self) -> None:
        """From here on; what was compiled until now was so on the way, in tracing the program."""
        if "until" in self.request:
            self.names = set(os.listdir(self.request["dump"]))
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.end_if_past()
            time.sleep(0.05)

    def end_if_past(self) -> None:
        if "until" not in self.request:
            return
        with self.lock:
            new = set(os.listdir(self.request["dump"])) - self.names
            if any(self.name.search(name) for name in new):
                _write(self.request, self.answer)
                _end()


def _release() -> tuple[int, ...]:
    """The numbers of the jaxlib that is installed; none where there is no jaxlib."""
    try:
        return tuple(int(n) for n in re.findall(r"\d+", importlib.metadata.version("jaxlib"))[:3])
    except importlib.metadata.PackageNotFoundError:
        return ()


def _add_flags(flags: list[dict[str, str]]) -> str:
    """XLA_FLAGS with those that this release needs ahead of the others, so that the user's are the last."""
    needed = [f["flag"] for f in flags if _release() < tuple(int(n) for n in f["until"].split("."))]
    os.environ["XLA_FLAGS"] = " ".join([*needed, os.environ.get("XLA_FLAGS", "")]).strip()
    return os.environ["XLA_FLAGS"]


def _find_nvcc() -> None:
    """Where the package of nvcc lies, which JAX 0.4.35 takes for a module with a file: newer ones have none."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ImportError:
        return
    if spec is not None and spec.origin is None and spec.submodule_search_locations:
        os.environ.setdefault("CUDA_ROOT", next(iter(spec.submodule_search_locations)))


def _device(request: dict[str, Any], answer: dict[str, Any]) -> Any:
    """The device to compile for, which need not exist; None for the CPU we are on."""
    target = request["target"]
    if target == "cpu":
        return None
    from jax.experimental import topologies

    try:
        if target == "gpu":
            config = Path(request["target_config"]).read_text(encoding="utf-8")
            found, answer["unknown_fields"] = _gpu_topology(config)
        else:
            found = topologies.get_topology_desc(platform="tpu", topology_name=request["topology"])
    except (NotImplementedError, ImportError) as error:
        raise Problem(MISSING, f"{target} plugin ({error})") from None
    except Exception as error:
        text = str(error)
        kind = MISSING if "not installed" in text or "not implemented" in text else PROGRAM
        raise Problem(kind, f"{target} plugin ({text[:400]})") from None
    return found.devices[0]


_UNKNOWN_FIELD = re.compile(r"GpuTargetConfigProto: (\d+):\d+: .*has no field named \"(\w+)\"")


def _gpu_topology(config: str) -> tuple[Any, list[str]]:
    """The topology of one such GPU, and the fields that this XLA does not know, which it was not given."""
    from jax.experimental import topologies

    lines, unknown = config.splitlines(), []
    while True:
        with tempfile.TemporaryFile() as said, _stderr_to(said):
            try:
                text = "\n".join(lines)
                return topologies.get_topology_desc(
                    platform="cuda", target_config=text, topology="1x1x1"
                ), unknown
            except Exception as error:
                said.seek(0)
                why = said.read().decode(errors="replace")
                refused = _UNKNOWN_FIELD.search(why)
                at = int(refused[1]) - 1 if refused is not None else -1
                if refused is None or not lines[at].lstrip().startswith(refused[2]):
                    at = why.find("Error parsing")
                    said_ = f": {why[at:].splitlines()[0]}" if at >= 0 else ""
                    raise RuntimeError(f"{error}{said_}") from None
        end, depth = at, 0
        while True:
            depth += lines[end].count("{") - lines[end].count("}")
            end += 1
            if depth <= 0:
                break
        del lines[at:end]
        unknown.append(refused[2])


@contextmanager
def _stderr_to(file: Any) -> Iterator[None]:
    """What XLA writes there by itself, into `file` instead."""
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


# ---- programs


def _functions(request: dict[str, Any]) -> list[tuple[str, Any]]:
    """What the request names, as _made takes it: a function with its arguments, or a mapping of those."""
    module = _import(request["where"])
    name = request["name"]
    found = _attribute(module, name, request["where"])
    if isinstance(found, dict):
        only = request.get("only")
        unknown = sorted(set(only or ()) - found.keys())
        if unknown:
            raise Problem(PROGRAM, f"{name} has no {', '.join(unknown)}")
        return [(str(n), entry) for n, entry in found.items() if not only or n in only]
    if not callable(found):
        kind = type(found).__name__
        raise Problem(
            PROGRAM,
            f"{name} is of type {kind}; expected a function, or a mapping of names to (function, arguments)",
        )
    if request.get("arguments_from"):
        import jax

        make = _attribute(module, request["arguments_from"], request["where"])
        try:
            arguments = jax.eval_shape(lambda: tuple(make()))
        except Exception as error:
            message = f"{request['arguments_from']}() raised {type(error).__name__}: {str(error)[:300]}"
            raise Problem(PROGRAM, message) from None
    else:
        arguments = tuple(_argument(a) for a in request["arguments"])
        _check_call(found, arguments, name)
    return [(getattr(found, "__name__", name), (found, arguments))]


def _resolved(entry: Any) -> tuple[Any, tuple[Any, ...]]:
    """(function, arguments), which a mapping may have made only when their turn comes."""
    resolved = entry() if callable(entry) else entry
    if not isinstance(resolved, tuple | list) or len(resolved) != 2 or not callable(resolved[0]):
        raise TypeError("expected (function, arguments), or a function without arguments that returns them")
    return resolved[0], tuple(resolved[1])


def _import(where: str) -> Any:
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        path = Path(where).resolve()
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    except BaseException as error:
        raise Problem(PROGRAM, f"importing {where} raised {type(error).__name__}: {error}") from None


def _attribute(module: Any, name: str, where: str) -> Any:
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            there = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
            own = [n for n in there if getattr(getattr(module, n), "__module__", None) == module.__name__]
            raise Problem(PROGRAM, f"{where} has no {name}; it has {', '.join((own or there)[:12])}")
        found = getattr(found, part)
    return found


def _check_call(function: Any, arguments: tuple[Any, ...], name: str) -> None:
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        given = f"{len(arguments)} given" if arguments else "none given: --args says their shapes"
        raise Problem(PROGRAM, f"the arguments of {name}{signature} do not fit, {given} ({error})") from None


def _argument(spec: dict[str, Any]) -> Any:
    """An argument as the parent describes it: arrays are only shapes."""
    import jax

    kind, value = next(iter(spec.items()))
    if kind == "array":
        return jax.ShapeDtypeStruct(tuple(value["shape"]), jax.numpy.dtype(value["dtype"]))
    if kind == "dict":
        return {k: _argument(v) for k, v in value}
    if kind in ("list", "tuple"):
        items = [_argument(v) for v in value]
        return items if kind == "list" else tuple(items)
    return value


# ---- compiling


def _nothing() -> None: ...


def _compile_function(
    name: str,
    function: Any,
    arguments: tuple[Any, ...],
    device: Any,
    target: str,
    begin: Callable[[], None] = _nothing,
) -> None:
    """`begin` is called between tracing and compiling."""
    import jax

    jitted = function if hasattr(function, "lower") else jax.jit(_named(function, name))
    if device is None:
        lowered = jitted.lower(*arguments)
        begin()
        lowered.compile()
        return
    here = jax.sharding.SingleDeviceSharding(device)
    arrays = 0

    def placed(leaf: Any) -> Any:
        nonlocal arrays
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            return leaf
        arrays += 1
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here)

    arguments = jax.tree.map(placed, arguments)
    lowered = jitted.trace(*arguments).lower(lowering_platforms=(_PLATFORM[target],))
    if arrays:
        begin()
        lowered.compile()
    else:  # nothing tells jit where to go
        _compile_module(lowered.compiler_ir("stablehlo"), device, begin)


def _named(function: Any, name: str) -> Any:
    if getattr(function, "__name__", None) == name:
        return function

    def entry(*arguments: Any) -> Any:
        return function(*arguments)

    entry.__name__ = entry.__qualname__ = name
    return entry


def _read_module(path: Path) -> Any:
    """StableHLO (text or bytecode), HLO text or an HLO proto, as an MLIR module."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    data = path.read_bytes()
    if path.suffix in (".hlo", ".pb"):
        import jaxlib._hlo
        import jaxlib._jax

        if path.suffix == ".hlo":
            module = jaxlib._hlo.hlo_module_from_text(data.decode())
            data = module.as_serialized_hlo_module_proto()
        data = jaxlib._jax.mlir.hlo_to_stablehlo(data)
    with mlir.make_ir_context() as context:
        if path.suffix == ".mlirbc" and b"StableHLO" in data[:64]:  # a portable artifact
            import jaxlib._jax

            return jaxlib._jax.mlir.deserialize_portable_artifact(data, context)
        return ir.Module.parse(data)


def _compile_module(module: Any, device: Any, begin: Callable[[], None] = _nothing) -> None:
    import jax
    import jaxlib._jax
    import numpy
    from jax._src import compiler

    here = jax.devices("cpu")[0] if device is None else device
    options = compiler.get_compile_options(
        num_replicas=1, num_partitions=1, device_assignment=numpy.array([[0]]), backend=here.client
    )
    with module.context:
        # The CPU client compiles only what it can also run; a topology cannot run anything.
        compile_it = here.client.compile_and_load if device is None else here.client.compile
        begin()
        compile_it(module, jaxlib._jax.DeviceList((here,)), options)


if __name__ == "__main__":
    main()
