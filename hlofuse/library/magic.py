"""`%load_ext hlofuse`, then `%%hlofuse`: explain the jitted functions that a notebook cell calls."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import Markdown, display

from hlofuse.format.escape import markdown
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.opening import open as open_report

REPORTS = "hlofuse_reports"
"""The variable of the notebook that has the reports of the last cell."""


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by `%load_ext hlofuse`."""
    shell.register_magics(HlofuseMagics)


@magics_class
class HlofuseMagics(Magics):
    @magic_arguments()
    @argument("--device", help="The GPU, a name or a file (hlofuse devices).  [default: compile for CPU]")
    @argument("--target", help="cpu or gpu.  [default: gpu with --device, else cpu]")
    @argument("--xla", help="The XLA to repeat, as a release of jaxlib.")
    @argument("--xla-flags", help="XLA flags to compile with.")
    @cell_magic
    def hlofuse(self, line: str, cell: str) -> None:
        """Run the cell, then compile each jitted function that it called ahead of time and explain it.

        No accelerator is needed. The variable `hlofuse_reports` has the reports, in the order of the calls.
        """
        how = vars(parse_argstring(self.hlofuse, line))
        assert self.shell is not None
        calls: list[_Call] = []
        with _watch_jit(self.shell.user_ns, calls):
            result = self.shell.run_cell(cell)
        if not result.success:
            raise _CellFailed
        if not calls:
            raise UsageError(
                "the cell called no jitted function of this notebook: call one that jax.jit made, in the cell"
                " itself. Functions that a package jits are captured by hlofuse capture -- python script.py"
            )
        reports = self.shell.user_ns[REPORTS] = []
        for call in calls:
            try:
                report = open_report(call, *call.arguments, **how)
            except HlofuseError as error:
                raise UsageError(f"{call.__name__}: {error}") from None
            reports.append(report)
            if len(calls) > 1:
                display(Markdown(f"**{markdown(call.__name__)}**"))
            display(report)


class _CellFailed(Exception):
    """The cell itself raised, and that is shown already."""

    def _render_traceback_(self) -> list[str]:
        return []


class _Call:
    """One call of a jitted function: what `hlofuse.capture` traces, with the shapes of its arguments."""

    def __init__(self, jitted: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.__name__ = getattr(jitted, "__name__", "function")
        self.arguments = arguments
        self._jitted, self._keywords = jitted, keywords

    def __call__(self) -> None:
        """It is callable as any function to compile is; only `trace` is called."""

    def trace(self, *arguments: Any) -> Any:
        return self._jitted.trace(*arguments, **self._keywords)


class _Recorder:
    """A jitted function whose calls are recorded, each with other shapes once."""

    def __init__(self, jitted: Any, calls: list[_Call]) -> None:
        update_wrapper(self, jitted, updated=())
        self.jitted, self._calls = jitted, calls
        self._seen: set[str] = set()

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        import jax

        from hlofuse.capture import shape_only

        leaves = jax.tree.leaves((arguments, keywords))
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            shapes = jax.tree.map(shape_only, (arguments, keywords))
            if str(shapes) not in self._seen:
                self._seen.add(str(shapes))
                self._calls.append(_Call(self.jitted, *shapes))
        return self.jitted(*arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jitted, name)


@contextmanager
def _watch_jit(names: dict[str, Any], calls: list[_Call]) -> Iterator[None]:
    """Has `jax.jit`, and functions of the notebook that are jitted already, record their calls."""
    try:
        import jax
    except ImportError:
        raise UsageError('%%hlofuse needs JAX: pip install "hlofuse[capture]"') from None
    jit = jax.jit

    def recording(function: Any = None, **how: Any) -> Any:
        if function is None:
            return lambda later: recording(later, **how)
        return _Recorder(jit(function, **how), calls)

    def exchange(is_old: Callable[[Any], bool], new: Callable[[Any], Any]) -> None:
        for name, value in list(names.items()):
            if is_old(value):
                names[name] = new(value)

    exchange(lambda v: isinstance(v, type(jit(lambda: None))), lambda v: _Recorder(v, calls))
    exchange(lambda v: v is jit, lambda _: recording)
    jax.jit = recording
    try:
        yield
    finally:
        jax.jit = jit
        exchange(lambda v: v is recording, lambda _: jit)
        exchange(lambda v: isinstance(v, _Recorder), lambda v: v.jitted)
