"""The programs of a request."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

MISSING, PROGRAM = "missing", "program"


class Problem(Exception):
    """The reason of a failed compilation; `kind` decides the parent's reaction."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Sharded:
    """The shape of an array divided by axes of the mesh, by dimension."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        axes: tuple[tuple[str, ...] | None, ...],
    ) -> None:
        self.shape, self.dtype, self.axes = shape, dtype, axes


def functions(request: dict[str, Any]) -> list[tuple[str, Any]]:
    """The requested function with its arguments, or a mapping of those, as `resolve` takes them."""
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
        make = _attribute(module, request["arguments_from"], request["where"])
        try:
            arguments = _shapes(make)
        except Exception as error:
            message = f"{request['arguments_from']}() raised {type(error).__name__}: {str(error)[:300]}"
            raise Problem(PROGRAM, message) from None
    else:
        arguments = tuple(_argument(a) for a in request["arguments"])
        _check_call(found, arguments, name)
    return [(getattr(found, "__name__", name), (found, arguments))]


def _shapes(make: Any) -> tuple[Any, ...]:
    """The shapes of the arguments that `make` returns, with the shardings that it gives or puts them on."""
    import jax

    described: list[Any] = []

    def arrays() -> list[Any]:
        """The leaves; a description, a function or a number is no result of a traced function."""
        leaves, tree = jax.tree.flatten(tuple(make() if callable(make) else make))
        own = {n: x for n, x in enumerate(leaves) if not hasattr(x, "__array__")}
        described[:] = [tree, own]
        return [0 if n in own else leaf for n, leaf in enumerate(leaves)]

    traced, shapes = jax.make_jaxpr(arrays, return_shape=True)()
    placed = {id(out): _placement(e.params) for e in traced.jaxpr.eqns for out in e.outvars}
    tree, own = described
    found = [
        own[n] if n in own else jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=placed.get(id(out)))
        for n, (shape, out) in enumerate(zip(shapes, traced.jaxpr.outvars, strict=True))
    ]
    return tuple(jax.tree.unflatten(tree, found))


def _placement(params: dict[str, Any]) -> Any:
    """The mesh placement that a traced operation gives its result; None where it gives none."""
    import jax

    given = (params.get("sharding"), *(params.get("devices") or ()))
    return next((s for s in given if isinstance(s, jax.sharding.NamedSharding)), None)


def resolve(entry: Any) -> tuple[Any, tuple[Any, ...]]:
    """(function, arguments); a mapping may compute them on demand."""
    resolve = entry() if callable(entry) else entry
    if not isinstance(resolve, tuple | list) or len(resolve) != 2 or not callable(resolve[0]):
        raise TypeError("expected (function, arguments), or a function without arguments that returns them")
    return resolve[0], tuple(resolve[1])


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
        given = f"{len(arguments)} given" if arguments else "none given; give their shapes with --args"
        raise Problem(PROGRAM, f"arguments do not match {name}{signature}: {given} ({error})") from None


def _argument(spec: dict[str, Any]) -> Any:
    """An argument from the parent's description: arrays are only shapes."""
    import jax

    kind, value = next(iter(spec.items()))
    if kind == "array":
        shape, dtype = tuple(value["shape"]), jax.numpy.dtype(value["dtype"])
        if "axes" in value:
            return Sharded(shape, dtype, tuple(tuple(names) or None for names in value["axes"]))
        return jax.ShapeDtypeStruct(shape, dtype)
    if kind == "dict":
        return {k: _argument(v) for k, v in value}
    if kind in ("list", "tuple"):
        items = [_argument(v) for v in value]
        return items if kind == "list" else tuple(items)
    return value
