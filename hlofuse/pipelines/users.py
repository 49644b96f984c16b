"""The order of an instruction's users, as far as it can be told.

XLA appends a user when it is made, or when a pass gives it another operand, and puts the last one
where one was taken out. A text is in post-order,
and so are the lists a reader builds from it, which is nearly always what XLA has: the passes that
gave out operands last (layout assignment, simplification, CSE) went in that order. What follows are
the exceptions that ids, or what an instruction is, give away.
"""

from __future__ import annotations

import re

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.pipelines.split_reductions import with_split_reductions_behind
from hlofuse.pipelines.swapped_converts import _is_same_broadcast, with_swapped_behind
from hlofuse.pipelines.visits import Uses, uses_in_order
from hlofuse.pipelines.widened import is_inserted_convert, is_narrowing, users_of_widened, widened

_NUMBERS = re.compile(r"(\.\d+)+$")


def restore_users(module: Module, *, ids_known: bool) -> None:
    """Put the users of every instruction outside of fusions into their likely order."""
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        uses, wide = uses_in_order(computation), widened(computation)
        for instruction in computation:
            if len(instruction.users) > 1:
                instruction.users[:] = _likely(instruction, instruction.users, uses, wide, ids_known)


def _likely(
    producer: Instruction,
    users: list[Instruction],
    uses: Uses,
    wide: frozenset[Instruction],
    ids_known: bool,
) -> list[Instruction]:
    # Fusions that are there already were made last, around operations that had been there before.
    users = [u for u in users if u.opcode != "fusion"] + [u for u in users if u.opcode == "fusion"]
    if ids_known:
        users = _own_scope_by_age(producer, users)
    if producer.opcode == "fusion" or (
        _program(producer) and not producer.name.endswith(".0.0") and not (ids_known and _made(producer, producer.computation.root))
    ):
        users = _of_expression(producer, users)
    if _widening(producer) or _widening_broadcast(producer):
        # Every user got one of its own; CSE made them one, in the order of the walk.
        return sorted(users, key=lambda user: uses[producer, user])
    if producer in wide:
        users = users_of_widened(producer, users, uses, wide)
    users = with_split_reductions_behind(with_swapped_behind(users))
    if not ids_known:
        return users
    users = _behind_narrowed(users)
    if _is_sort_bits(producer):
        return sorted(users, key=_age)
    users = _sort_keys(producer, users)
    root = producer.computation.root
    if len(users) > 1 and all(_made(u, root) for u in users) and not _made(producer, root) and producer.opcode == 'reduce':
        users = sorted(users, key=_age)
        if _moved(users[-1]):
            return [users[-1], *users[:-1]]
    if True:
        late = [u for u in users if _leads_to_a_dot(u, producer)]
        users = [u for u in users if u not in late] + late
    if not scope(producer) and _program(producer):
        users = [u for u in users if u.id > producer.id] + [u for u in users if u.id < producer.id]
    if producer.opcode == "slice":
        # Seen in records, on every device; which pass keeps this order we do not know.
        return sorted(users, key=_age_in_program)
    if producer.opcode == "broadcast" and _made_together(producer, users):
        users = sorted(users, key=_age)
        if True:
            users = _without_ghosts(producer, users)
        return users
    for square in [u for u in users if u.opcode == "multiply" and u.operands == [producer, producer]]:
        # Simplification made it of a power, so that it comes behind all that are older.
        others = [u for u in users if u is not square]
        older = max((k for k, u in enumerate(others) if u.id < square.id), default=-1)
        place = max(older + 1, users.index(square))
        users = [*others[:place], square, *others[place:]]
    return users


def _made_together(broadcast: Instruction, users: list[Instruction]) -> bool:
    """The users were made one after the other, right behind the broadcast or by one pass for it."""
    if all(_root(u) == "multiply" == u.opcode for u in users):
        return True  # division by a constant became multiplication
    ids = [u.id for u in users]
    return min(ids) > broadcast.id and max(ids) - broadcast.id == len(ids)


def _root(instruction: Instruction) -> str:
    """The name without its numbers."""
    return _NUMBERS.sub("", instruction.name)


def _age(instruction: Instruction) -> int:
    return instruction.id


def _age_in_program(user: Instruction) -> int:
    """That of what an inserted convert serves, where it is one."""
    if is_inserted_convert(user) and not is_narrowing(user):
        return min((u.id for u in user.users), default=user.id)
    return user.id


def scope(x):
    name = x.op_name
    if not name:
        return None
    parts = name.partition(";")[0].split("/")[1:]
    last = max((k for k, p in enumerate(parts) if "jit(" in p), default=-1)
    return "/".join(parts[: last + 1])


def _program(u):
    op_name = u.op_name
    if not op_name:
        return False
    name = u.name[:-2] if u.name.endswith(".0") else u.name
    root = _NUMBERS.sub("", name)
    last = re.sub("[^A-Za-z0-9_]", "_", op_name.rpartition("/")[2])
    return root == last


def _served(user):
    if not is_inserted_convert(user) or is_narrowing(user):
        return user
    if user.users:
        return min(user.users, key=lambda u: u.id)
    old = user.operands[0]
    if old.opcode == "broadcast":
        for lifted in old.operands[0].users:
            if lifted.opcode == "convert":
                for new in lifted.users:
                    if new.opcode == "broadcast" and new.shape.dimensions == old.shape.dimensions and new.attributes.get("dimensions") == old.attributes.get("dimensions") and new.users:
                        return min(new.users, key=lambda u: u.id)
    return user


def _own_scope_by_age(producer, users):
    if is_narrowing(producer):
        producer = producer.operands[0]
    s = scope(producer)
    if not s:
        return users
    served = {u: _served(u) for u in users}
    before = users
    own = [u for u in users if scope(served[u]) == s and served[u].id > producer.id and _program(served[u])]
    it = iter(sorted(own, key=lambda u: served[u].id))
    users = [next(it) if u in own else u for u in users]
    users = [u for u in users if scope(served[u]) == s] + [u for u in users if scope(served[u]) != s]
    inner = [u for u in users if scope(served[u]) == s]
    outer = [u for u in users if scope(served[u]) != s]
    import os
    if outer and _has_other_results(producer, s):
        out = []
        seen = set()
        for u in inner:
            key = _kind(u)
            if key in seen:
                out.append(None)
                seen.clear()
            seen.add(key)
            out.append(u)
        out += [None, *outer]
        while None in out:
            k = out.index(None)
            last = out.pop()
            if k < len(out):
                out[k] = last
        return out
    if not own:
        return before
    return [*inner, *outer]


def _has_other_results(producer, s):
    for near in (lambda x: x.operands, lambda x: x.users):
        found = {producer}
        pending = [producer]
        while pending:
            for x in near(pending.pop()):
                if x not in found and scope(x) == s:
                    found.add(x)
                    pending.append(x)
        for x in found:
            if x is producer or not _program(x) or x.opcode in ("constant", "iota") or x.opcode == "broadcast" and x.operands[0].opcode == "constant":
                continue
            if any(scope(u) != s for u in x.users):
                return True
    return False


def _kind(u):
    return (u.opcode, u.op_name, tuple((o.opcode, o.op_name) for o in u.operands))


def _leads_to_a_dot(user, producer):
    came = producer
    node = user
    while node.opcode in ("bitcast", "pad") and len(node.users) == 1:
        came, node = node, node.users[0]
    if node.opcode != "fusion" or node.fusion_kind != "kCustom":
        return False
    k = node.operands.index(came)
    x = next(y for y in node.fused_computation.instructions if y.opcode == "parameter" and y.parameter_number == k)
    while len(x.users) == 1 and x.users[0].opcode in ("bitcast", "transpose", "reshape", "copy"):
        x = x.users[0]
    return any(u.opcode not in ("dot", "bitcast", "transpose", "reshape", "copy") for u in x.users)


def _without_ghosts(producer, users):
    constant = producer.operands[0]
    if constant.opcode != "constant":
        return users
    order = {x: k for k, x in enumerate(producer.computation.post_order())}
    out = list(users)
    ghosts = []
    for f in order:
        if f.opcode != "fusion" or not f.name.startswith("triton_softmax"):
            continue
        for b in f.fused_computation.instructions:
            if b.opcode == "broadcast" and b.operands[0].opcode == "constant" and str(b.operands[0].literal) == str(constant.literal) and b.shape.key == producer.shape.key:
                for u in b.users:
                    place = next((k for k, v in enumerate(out) if v not in ghosts and order[v] > order[f]), len(out))
                    out.insert(place, u)
                    ghosts.append(u)
    for g in ghosts:
        k = out.index(g)
        last = out.pop()
        if k < len(out):
            out[k] = last
    return out


def _made(u, root):
    return not scope(u) and u.id > root.id


def _moved(u):
    from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
    return u.opcode in ELEMENTWISE_OPCODES and _program(u)


def _widening(x):
    return is_inserted_convert(x) and not is_narrowing(x)


def _widening_broadcast(x):
    """Broadcast of an inserted convert, the old one still there."""
    return x.opcode == "broadcast" and _widening(x.operands[0]) and any(
        old.opcode == "broadcast" and old.shape.dimensions == x.shape.dimensions and old.attributes.get("dimensions") == x.attributes.get("dimensions")
        for old in x.operands[0].operands[0].users
    )


def _behind_narrowed(users):
    """Concatenates cut down to what one slice needs"""
    cut = sorted((u for u in users if _cut(u)), key=_age)
    if len(cut) < 2:
        return users
    others = [u for u in users if u not in cut]
    if any(u.opcode == "concatenate" and all(o in u.operands for c in cut for o in c.operands) for u in others):
        return [*others, *cut]
    return [*others, cut[-1], *cut[:-1]]


def _cut(u):
    return u.opcode == "concatenate" and len(u.users) == 1 and u.users[0].opcode == "slice" and u.users[0].id == u.id + 1


def _is_sort_bits(x):
    """The bits of a key of which SortRewriter makes an ordered integer."""
    return x.opcode == "bitcast" and sorted(u.opcode for u in x.users) == ["not", "xor"] and len({v for u in x.users for v in u.users}) == 1


def _sort_keys(x, users):
    ne = [u for u in users if u.opcode == "compare" and u.operands == [x, x]]
    made = [u for u in users if u in ne or u.opcode == "compare" and u.attributes.get("direction") == "EQ" and any(v.opcode == "select" and v.operands[0] is u and v.operands[2] is x for v in u.users) or u.opcode == "select" and u.operands[2] is x and u.operands[0].opcode == "compare" and u.operands[1] in u.operands[0].operands]
    if len(ne) != 1 or len(made) != 3:
        return users
    others = [u for u in users if u not in made]
    return [*others, *sorted(made, key=_age)]


def _place(x):
    metadata = x.attributes.get("metadata")
    if metadata is None or not metadata.stack_frame_id:
        return None
    frames = x.computation.module.stack_frames
    frame = frames.frames.get(metadata.stack_frame_id)
    place = frame and frames.locations.get(frame.get("file_location_id", 0))
    if not place or "end_column" not in place:
        return None
    parent = frame.get("parent_frame_id")
    return (
        (place.get("file_name_id"), None if parent == metadata.stack_frame_id else parent),
        (place["line"], place["column"]),
        (place["end_line"], place["end_column"]),
    )


def _of_expression(x, users):
    mine = _place(x)
    if mine is None:
        return users
    places = {u: _place(u) for u in users}
    around = [u for u in users if (p := places[u]) and p[0] == mine[0] and p[1] <= mine[1] and p[2] >= mine[2]]
    if all(places[u] == mine for u in around):
        return users
    rest = [u for u in users if u not in around]
    return around + rest
