"""What the name of an instruction tells of where it came from."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.named_calls import calls_shared, function_in_name, is_name_of_call, named_calls

_NUMBER_BEHIND = re.compile(r"(\.\d+)+$")
_NUMBER = re.compile(r"(.*)\.(\d+)", re.DOTALL)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_KEPT_NAMES = frozenset({"parameter", "fusion", "custom-call"})
_ENTRY = "jit(main)"
_OPCODES = {
    "add_any": "add",
    "cos": "cosine",
    "div": "divide",
    "eq": "compare",
    "exp": "exponential",
    "expm1": "exponential-minus-one",
    "ge": "compare",
    "gt": "compare",
    "le": "compare",
    "log1p": "log-plus-one",
    "lt": "compare",
    "max": "maximum",
    "min": "minimum",
    "mul": "multiply",
    "ne": "compare",
    "neg": "negate",
    "pow": "power",
    "rem": "remainder",
    "select_n": "select",
    "sin": "sine",
    "sub": "subtract",
}
"""What is element-wise, after which older releases name nothing: names are opcodes there."""
_OF_FRAMEWORK = frozenset({*_OPCODES, "convert_element_type", "integer_pow", "square"})
"""What the framework calls element-wise operations that XLA has other names for."""
_REMEMBERED = 1 << 15
"""Names and paths are asked about again and again, and of those no more than a module has."""


class Name(NamedTuple):
    """A name taken apart."""

    root: str
    number: int


def name_before_renaming(instruction: Instruction) -> Name:
    """Root and number before `rename-instructions` appended .0."""
    return _before_renaming(instruction.name, instruction.opcode not in _KEPT_NAMES)


def number_in_name(instruction: Instruction) -> int:
    """The number of that name; 0 if it has none."""
    return name_before_renaming(instruction).number


@lru_cache(maxsize=_REMEMBERED)
def _before_renaming(text: str, renamed: bool) -> Name:
    numbered = not renamed
    if renamed and text.endswith(".0"):
        text, numbered = text[:-2], True
    match = _NUMBER.fullmatch(text)
    if match is None:
        return Name(text, 0)
    # Where nothing was appended the number is the renaming's own, and there was none before.
    return Name(match[1], int(match[2]) if numbered else 0)


def is_of_several(x: Instruction) -> bool:
    """Did a pass make it of several operations, of which it has the names of all?"""
    return ";" in (x.op_name or "")


def is_one_missing(before: Instruction, behind: Instruction) -> bool:
    """Is there a number of the same root between theirs, of what is gone?"""
    first, last = name_before_renaming(before), name_before_renaming(behind)
    return first.root == last.root and last.number - first.number == 2


def is_without_op_name(x: Instruction) -> bool:
    """Did it have no op_name when the compiler was given it? Its own name is no other."""
    name = x.op_name or ""
    return not name or ("/" not in name and _operation(name) == name_before_renaming(x).root != name)


def operation(x: Instruction) -> str:
    """What the framework calls the operation that it comes of, such as `dot_general`; "" for nothing.

    Of a text without metadata XLA notes the name of an instruction instead, number and all.
    """
    return _operation(x.op_name or "")


@lru_cache(maxsize=_REMEMBERED)
def _operation(op_name: str) -> str:
    name = op_name.rpartition("/")[2]
    return _NUMBER_BEHIND.sub("", name) if name[-1:].isdigit() else name


def opcode_of(name: str) -> str:
    """Of what the framework calls so, if it is element-wise."""
    return _OPCODES.get(name, name)


def stack_frame(x: Instruction) -> int:
    """The number of the place in the source that it comes of; 0 for none."""
    metadata = x.attributes.get("metadata")
    return (metadata.stack_frame_id or 0) if metadata is not None else 0


def is_of_program(x: Instruction) -> bool:
    """Is it named after the framework's operation, rather than by a pass after its opcode?

    In a text without metadata an element-wise operation that is named otherwise is.
    """
    op_name, opcode = x.op_name, x.opcode
    if op_name:
        return opcode != "parameter" and _is_named_after(x.name, op_name, opcode)
    return opcode in ELEMENTWISE_OPCODES and name_before_renaming(x).root in _OF_FRAMEWORK


def is_told_of_program(x: Instruction) -> bool:
    """The same where the metadata has to tell: ids are guessed of all operations alike, or of none."""
    op_name, opcode = x.op_name, x.opcode
    if not op_name or opcode == "parameter":
        return False
    return _is_named_after(x.name, op_name, opcode)


def is_of_older_release(x: Instruction) -> bool:
    """Does its op_name tell of the entry, as those of older releases of JAX do?"""
    return _names_entry(x.op_name or "")


@lru_cache(maxsize=_REMEMBERED)
def _names_entry(op_name: str) -> bool:
    _, *parts = op_name.split("/")[len(named_calls(op_name)) :]
    return len(parts) > 1 and parts[0] == _ENTRY


@lru_cache(maxsize=_REMEMBERED)
def _is_named_after(name: str, op_name: str, opcode: str) -> bool:
    root = _before_renaming(name, opcode not in _KEPT_NAMES).root
    last = _NOT_IN_NAMES.sub("_", op_name.rpartition("/")[2])
    if root == opcode == _OPCODES.get(last):
        return _names_entry(op_name)
    return root == last or (last.startswith(root) and root != opcode)


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
    if not _is_in_entry(root):
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


def is_cloned_whole(computation: Computation) -> bool:
    """Is it the body of a loop that constants were sunk into, after all calls had been inlined?"""
    return ".sunk" in computation.name


_BODIES = re.compile(r"body|cond|branch_\d+_fun")
"""The computations of loops and conditionals."""

SLICE_OF_SCAN = "/body/jit(dynamic_index_in_dim)/dynamic_slice"
"""How the name of a slice ends that a scan takes of what it goes over."""

FUNCTIONS_OF_SCAN = ("eval_jaxpr", "closed_call")
"""What the framework calls the body of a scan; the second is what it did before."""
_CALLS = frozenset(FUNCTIONS_OF_SCAN)
"""Functions that the framework makes of parts of a program without jit, such as the body of a scan."""


def is_of_called(x: Instruction) -> bool:
    """Is it of a function, a loop or a branch, which the framework writes as computations of their own?"""
    return bool(scope(x)) or is_in_branch(x) or "/body/" in (x.op_name or "")


def is_in_branch(x: Instruction) -> bool:
    """Is it of a branch of a conditional, which may have been inlined since?"""
    return "/branch_" in (x.op_name or "")


def is_of_derivative(x: Instruction) -> bool:
    """Is it of what differentiation in reverse made, `transpose(jvp(...))`?"""
    return "transpose(" in (x.op_name or "")


def scope(x: Instruction) -> str | None:
    """The call the instruction was inlined from, as its op_name tells: `jvp(jit(silu))`; "" for none.

    None if there is no op_name.
    """
    op_name = x.op_name
    return _scope(op_name) if op_name else None


@lru_cache(maxsize=_REMEMBERED)
def _scope(op_name: str) -> str:
    parts = _parts(op_name)
    last = max((k for k, part in enumerate(parts) if _is_call(part)), default=-1)
    return "/".join(parts[: last + 1])


def is_of_call(x: Instruction) -> bool:
    """Was it inlined from a computation that its own computation called?"""
    op_name = x.op_name or ""
    if named_calls(op_name):
        return bool(outermost_call(x))
    is_body = _is_innermost_a_body(op_name)
    return is_body is not None and (not is_body or _is_in_entry(x))


@lru_cache(maxsize=_REMEMBERED)
def _is_innermost_a_body(op_name: str) -> bool | None:
    """Is the innermost thing that it is in the body of a loop or a branch, or a call? None for neither."""
    for part in reversed(_parts(op_name)):
        if _BODIES.fullmatch(part):
            return True
        if _is_call(part):
            return False
    return None


def _is_in_entry(x: Instruction) -> bool:
    """Is it in the entry, or in a fusion there?"""
    computation = x.computation
    if computation is None or computation.module is None:
        return False
    entry = computation.module.entry
    return computation is entry or _called_computation(x) is entry


def _called_computation(x: Instruction) -> Computation | None:
    """The entry, the body of a loop or a branch: that of `x`, or that around the fusion it is in."""
    computation = x.computation
    while computation is not None and computation.fusion is not None:
        computation = computation.fusion.computation
    return computation


def outermost_call(x: Instruction) -> str:
    """The call out of which the instruction came into its computation: of nested ones the outermost.

    "" for none. Calls around a loop are not meant: they were inlined with the loop in them, and what had no
    name in the loop has theirs since.
    """
    op_name = x.op_name
    if not op_name:
        return ""
    calls = named_calls(op_name)
    if calls:
        around = _calls_around(x, calls)
        return "/".join(calls[: around + 1]) if around < len(calls) else ""
    function, is_in_body = _outermost_call(op_name)
    if is_in_body:
        return "" if is_named_around_loop(x) else function
    return function if _is_in_entry(x) else ""


def function_called(x: Instruction) -> str:
    """The function that the outermost call of `x` calls, `jit(_where)` or `jvp(jit(silu))`; "" for none.

    Where calls tell only their own names, the functions' stand in the path that `x` had before, or in theirs.
    """
    call = outermost_call(x)
    last = call.rpartition("/")[2]
    calls = named_calls(x.op_name or "")
    if not calls or not call:
        return last
    if written := function_in_name(last):
        return written
    functions = [part for part in _parts(x.op_name or "")[len(calls) :] if _is_call(part)]
    at = call.count("/") - len(calls)
    return functions[at] if -at <= len(functions) else ""


def _calls_around(x: Instruction, calls: tuple[str, ...]) -> int:
    """How many of the `calls` that `x` was inlined in are around the loop or the branch that it is in."""
    computation = _called_computation(x)
    loop = computation.first_caller if computation is not None else None
    return calls_shared(calls, named_calls(loop.op_name or "")) if loop is not None else 0


def is_named_around_loop(x: Instruction) -> bool:
    """Is it of a body, but bears the name of the loop, or of what is around that?

    So does the tuple a body gives back, what a scan stacks, and what a loop over a batch selects by its
    predicate.
    """
    loop = caller_of(x)
    if loop is None or loop.opcode not in {"while", "conditional"} or not loop.op_name or not x.op_name:
        return False
    return f"{loop.op_name}/".startswith(f"{x.op_name}/")


def caller_of(x: Instruction) -> Instruction | None:
    """What calls the computation of `x`, a loop or a conditional; None in the entry."""
    return x.computation.first_caller if x.computation is not None else None


@lru_cache(maxsize=_REMEMBERED)
def _outermost_call(op_name: str) -> tuple[str, bool]:
    """With whether that is one of the body of a loop or of a branch."""
    parts = _parts(op_name)
    loop = max((k for k, part in enumerate(parts) if _BODIES.fullmatch(part)), default=-1)
    first = next((k for k in range(loop + 1, len(parts)) if _is_call(parts[k])), None)
    return "" if first is None else "/".join(parts[: first + 1]), loop >= 0


@lru_cache(maxsize=_REMEMBERED)
def functions_around(op_name: str) -> tuple[tuple[str, str], ...]:
    """The functions that the innermost loop or branch calls on the way, by path; each with the way in it."""
    parts = _parts(op_name)
    loop = max((k for k, part in enumerate(parts) if _BODIES.fullmatch(part)), default=-1)
    own = parts[loop + 1 :]
    calls = (k for k, part in enumerate(own[:-1], 1) if _is_call(part))
    return tuple(("/".join(own[:k]), "/".join(own[k:])) for k in calls)


def is_called_once(x: Instruction) -> bool:
    """Did it come out of the body of a loop, which is a function, rather than of what that calls?"""
    return outermost_call(x).rpartition("/")[2] in _CALLS


def is_in_function(op_name: str) -> bool:
    """Is what has that `op_name` written in a function that the program calls, in whatever loops?"""
    return any(map(_is_call, _parts(op_name)))


def is_loop_of_one_turn(x: Instruction) -> bool:
    """Is it of the body of a loop that is gone: WhileLoopSimplifier put the body in place of the loop?"""
    return is_called_once(x) and (_is_in_entry(x) or _is_of_inner_loop(x))


def _is_of_inner_loop(x: Instruction) -> bool:
    """Is it of a loop in the body that it is in?"""
    loop = caller_of(x)
    return loop is not None and loop.opcode == "while" and loops_around(x) > loops_around(loop) + 1


def loops_around(x: Instruction) -> int:
    """How many loops and branches its op_name tells of, the parts of each of them counted."""
    return _loops(x.op_name or "")


@lru_cache(maxsize=_REMEMBERED)
def _loops(op_name: str) -> int:
    return sum(_BODIES.fullmatch(part) is not None for part in _parts(op_name))


def _parts(op_name: str) -> list[str]:
    """What stands between the program's name and the end; of several names the first counts.

    Older releases of JAX put the entry behind the program, as if that called it: `jit(f)/jit(main)/...`.
    """
    calls = named_calls(op_name)
    own = op_name.partition(";")[0].split("/")[len(calls) :]
    parts = own[1:] if own[1:] or not calls else own
    return [*calls, *(parts[1:] if parts[:1] == [_ENTRY] else parts)]


def _is_call(part: str) -> bool:
    return "jit(" in part or part in _CALLS or is_name_of_call(part)
