"""Run by the user's Python at its start: XLA:CPU takes modules of hlofuse in place of its own. HLOFUSE_RUN_AS
names a folder with the modules (`*.hlo`); results are added to `events` there."""

import importlib
import os
import sys
from contextlib import suppress
from importlib import util
from pathlib import Path
from typing import Any

_folder = Path(os.environ["HLOFUSE_RUN_AS"])


def _register(_: object) -> None:
    try:
        from jaxlib import _hlo as hlo
        from jaxlib import _xla
    except ImportError:
        return

    def described(proto: bytes) -> list[str]:
        module = hlo.XlaComputation(proto)
        shape = module.program_shape()
        return [module.name(), *map(str, (*shape.parameter_shapes(), shape.result_shape()))]

    def replacement(proto: bytes) -> Any:
        wanted, found = described(proto), None
        for key, own in protos.items():
            fits = found is None and described(own) == wanted
            found = own if fits else found
            if described(own)[0] == wanted[0]:
                print("replaced" if fits else "other", key, file=events, flush=True)
        return found

    events = (_folder / "events").open("a")
    texts = {f.stem: f.read_text("utf-8") for f in _folder.glob("*.hlo")}
    protos = {k: hlo.hlo_module_from_text(t).as_serialized_hlo_module_proto() for k, t in texts.items()}
    with suppress(AttributeError):  # jax.extend.xla would start every backend for that; 0 is PRE_SCHEDULER
        _xla.register_xla_transform("hlofuse", 0, replacement)
        print("registered", file=events, flush=True)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> Any:
        if name != "jax._src.xla_bridge":  # which every program with JAX imports
            return None
        sys.meta_path.remove(_Finder)
        spec: Any = util.find_spec(name)
        execute = spec.loader.exec_module
        spec.loader.exec_module = lambda module: _register(execute(module))
        return spec


sys.meta_path.insert(0, _Finder)
# The environment's own, which this one has hidden.
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]
_this = sys.modules.pop(__name__)
if util.find_spec(__name__) is not None:
    importlib.import_module(__name__)
else:
    sys.modules[__name__] = _this
