"""hlofuse: read XLA HLO dumps, replay XLA's fusion decisions, explain them. Begin with `hlofuse.open`."""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlofuse.capture import capture
    from hlofuse.diff import diff
    from hlofuse.explorer import explore
    from hlofuse.inputs.many import load
    from hlofuse.library.opening import open, replay
    from hlofuse.library.report import Report
    from hlofuse.library.verifying import verify
    from hlofuse.render import render
    from hlofuse.reports.explain.explain import explain

    __version__: str

_FUNCTIONS: dict[str, str] = {
    "capture": "hlofuse.capture",
    "load": "hlofuse.inputs",
    "replay": "hlofuse.library.opening",
    "explain": "hlofuse.reports.explain.explain",
    "explore": "hlofuse.explorer",
    "diff": "hlofuse.diff",
    "render": "hlofuse.render",
    "open": "hlofuse.library.opening",
    "Report": "hlofuse.library.report",
    "verify": "hlofuse.library.verifying",
}
__all__ = [
    "Report",
    "capture",
    "diff",
    "explain",
    "explore",
    "load",
    "open",
    "render",
    "replay",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version  # 20 ms that only this attribute costs

        try:
            return version("hlofuse")
        except PackageNotFoundError:  # a checkout that is not installed
            return "0+unknown"
    raise AttributeError(f"module 'hlofuse' has no attribute {name!r}")


class _FrontDoor(ModuleType):
    """A function stays reachable after the import of the package that has its name (`hlofuse.diff`)."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _FUNCTIONS or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor
