"""Assertions about fusion for tests of programs (docs/check.md).

    from hlofuse.testing import assert_fusion, assert_kernels

The pytest plugin in this package adds the fixture `fusion_snapshot`. Importing this loads nothing heavy."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .asserting import assert_fusion, assert_kernels

__all__ = ["assert_fusion", "assert_kernels"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from hlofuse.testing import asserting

        return getattr(asserting, name)
    raise AttributeError(f"module 'hlofuse.testing' has no attribute {name!r}")
