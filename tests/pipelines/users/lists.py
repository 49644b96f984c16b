"""The lists of users of small programs as they are restored, and what such programs are put together from."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hlofuse.ir import parse_module
from hlofuse.ir.module import Module
from hlofuse.pipelines.users.common.visits import uses_in_order
from hlofuse.pipelines.users.layouts.layout_normalization import restore_normalized_users
from hlofuse.pipelines.users.restore import restore_users

from ...running import find

HEAD = """HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
"""


SPLIT = """
%gemm (a: f32[4,32,64], b: f32[4,32,64]) -> f32[4,64,64] {
  %a = f32[4,32,64]{2,1,0} parameter(0)
  %b = f32[4,32,64]{2,1,0} parameter(1)
  ROOT %dot.1 = f32[4,64,64]{2,1,0} dot(%a, %b), lhs_batch_dims={0}, rhs_batch_dims={0},\
 lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
"""
"""The computation of a matrix product of 128 rows that SplitK made four of."""


def loop_of(body: str, kinds: str) -> str:
    """An entry that is a loop of that computation over a tuple of such `kinds`, and its condition."""
    return f"""%condition (c: {kinds}) -> pred[] {{
  %c = {kinds} parameter(0)
  %k = s32[] get-tuple-element(%c), index=0
  %most = s32[] constant(9)
  ROOT %lt.1 = pred[] compare(%k, %most), direction=LT
}}

ENTRY %main {{
  %given = {kinds} parameter(0)
  ROOT %loop = {kinds} while(%given), condition=%condition, body=%{body}{named("while", frame=1)}
}}
"""


def users_of(
    name: str,
    body: str,
    *,
    ids: str = "",
    head: str = "",
    tables: str = "",
    entry: str = "main",
    ids_known: bool = True,
) -> list[str]:
    """`ids` are names in the order of age, if that is not the order of the text, with what is gone as `-`.

    `tables` tell of places (`places_in_source`), `head` has the computations that `body` calls.
    """
    module = parse_module(_text(body, head=head, tables=tables, entry=entry))
    if ids:
        age = ids.split()
        module.entry.reorder(sorted(module.entry.instructions, key=lambda x: age.index(x.name)))
        names = {x.name for x in module.entry}
        age = [name for name in age if name == "-" or name in names]
        for x in module.entry:
            x.id = age.index(x.name)
    return users_in(module, name, ids_known=ids_known)


def users_as_guessed(name: str, body: str, *, head: str = "", tables: str = "") -> list[str]:
    """The same where ids are not known."""
    return users_in(_text(body, head=head, tables=tables), name, ids_known=False)


def users_in(program: str | Module, name: str, *, ids_known: bool) -> list[str]:
    """Those in a whole program; a text stands in the order of age."""
    module = parse_module(program) if isinstance(program, str) else program
    restore_users(module, ids_known=ids_known)
    return [u.name for u in find(module, name).users]


def users_normalized(name: str, body: str, wide: Collection[str]) -> list[str]:
    """Once layouts are normalized and simplified, given what was narrow then and is `wide` since."""
    module = parse_module(_text(body))
    entry = module.entry
    order = {x: k for k, x in enumerate(entry.post_order())}
    narrow = frozenset(x for x in entry if x.name in wide)
    restore_normalized_users(entry, order, uses_in_order(entry), narrow, ids_known=True)
    return [u.name for u in find(module, name).users]


def _text(body: str, *, head: str = "", tables: str = "", entry: str = "main") -> str:
    start = HEAD.replace("\n", f"\n{tables}\n", 1)
    return f"{start}\n{head}\nENTRY %{entry} {{\n{body}\n}}\n"


def named(op_name: str, *, frame: int = 0) -> str:
    """What the framework tells of an operation: its name, and a place in the source."""
    return f', metadata={{op_name="jit(f)/{op_name}"{f" stack_frame_id={frame}" if frame else ""}}}'


def places_in_source(*places: tuple[str, int, int, int], called_from: Mapping[int, int] | None = None) -> str:
    """The tables of a text for frames 1, 2…: the function of each, its line and columns.

    Frames may be `called_from` others, which XLA writes as one more than their number.
    """
    callers = called_from or {}
    functions = list(dict.fromkeys(function for function, *_ in places))
    names = (f'{k} "{function}"' for k, function in enumerate(functions, 1))
    locations = (
        f"{k} {{file_name_id=1 function_name_id={functions.index(function) + 1} "
        f"line={line} end_line={line} column={column} end_column={end}}}"
        for k, (function, line, column, end) in enumerate(places, 1)
    )
    frames = (
        f"{k} {{file_location_id={k} parent_frame_id={callers.get(k, 0) + 1}}}"
        for k in range(1, len(places) + 1)
    )
    tables = {
        "FileNames": ['1 "model.py"'],
        "FunctionNames": names,
        "FileLocations": locations,
        "StackFrames": frames,
    }
    return "\n" + "\n".join("\n".join((title, *rows, "")) for title, rows in tables.items())
