"""Where the ids of the program end, and those of what passes made begin."""

from __future__ import annotations

from functools import lru_cache

from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.calls_in_names import is_in_entry, scope
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation


def is_made_by_pass(x: Instruction) -> bool:
    """Is it younger than the root, outside of inlined calls? Ids have to be XLA's.

    The framework makes the root last; what calls bring in when they are inlined comes behind it, and then
    what passes make.
    """
    if x.computation is None or x.opcode == "tuple":
        return False  # a pass that made another tuple put it in the place of the one there was
    return x.id > last_of_program(x.computation.root) and not scope(x)


MADE_ANEW = frozenset({"gather", "sort"})
"""What GatherSimplifier or StableSortExpander made anew took the place of another: its id tells nothing."""


def last_of_program(root: Instruction) -> int:
    """The greatest id of what the framework made. Ids have to be XLA's.

    That is the root, if no pass made another, as LayoutAssignment does where a result is copied: the tuple of
    the program has a number, and is older than what was inlined. If one did, all goes before what was inlined
    or is named by a pass.
    """
    is_tuple_of_program = root.opcode == "tuple" and name_before_renaming(root) != ("tuple", 0)
    if not is_tuple_of_program and is_of_program(root):
        return root.id
    return _last_before_passes(root, root.id, is_tuple_of_program)


@lru_cache(maxsize=2)  # asked for one computation after the other
def _last_before_passes(root: Instruction, id_of_root: int, is_numbered: bool) -> int:
    if is_numbered and not _is_behind_calls(root):
        return id_of_root
    young = (x.id for x in root.computation or () if _is_surely_young(x))
    return min(young, default=id_of_root) - 1


def _is_behind_calls(root: Instruction) -> bool:
    """Is it the root of the entry, and younger than what was inlined there?

    What the first call brought in came together, and what reads its result is older.
    """
    if not is_in_entry(root):
        return False
    is_called = False
    for x in sorted(root.computation or (), key=lambda x: x.id):
        if x is root:
            return False
        if not x.operands or not is_of_program(x):
            continue
        if is_called and not scope(x):
            return False  # ids were given anew, operands first
        is_called = bool(scope(x))
        if is_called and any(u.id < x.id and not scope(u) for u in x.users):
            return True
    return False


def _is_surely_young(x: Instruction) -> bool:
    if x.opcode in {"bitcast", "fusion"}:
        return True
    if x.opcode in MADE_ANEW:
        return False
    if not x.operands or not x.op_name:
        return False
    if scope(x):
        return True
    # A sum of derivatives can have the name of a pass's: it took over that of a sum with zeros.
    return not is_of_program(x) and (x.opcode, operation(x)) != ("add", "add_any")
