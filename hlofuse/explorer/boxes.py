"""What the decisions of a replay do to the boxes of the module.

The trace speaks in names of the moment; here they become numbers that stay, and each decision the changes
it makes.
"""

from collections.abc import Iterable, Sequence

from hlofuse.explorer.model import Change, Op, Operation, Region
from hlofuse.rules.pages import family_of
from hlofuse.trace import Event

_STANDS_FOR = frozenset({"CS", "TS"})
_REMOVED = frozenset({"DC"})


class Boxes:
    """The boxes as they stand after the events followed so far."""

    def __init__(self, names: Sequence[str], launched: Sequence[bool], constants: set[int]) -> None:
        self.names = list(names)
        self.count = len(names)
        self.kernels = sum(launched)
        self._launched = list(launched)
        self._constants = constants
        self._alive = {name: n for n, name in enumerate(names)}
        self._name_of = dict(enumerate(names))
        self._ever = dict(self._alive)
        self._members: dict[int, dict[int, None]] = {n: {n: None} for n in range(len(names))}
        self._into: dict[int, int] = {}

    def find(self, name: str | None) -> int:
        """The box of that name, also one that is gone; -1 for what is none."""
        return self._ever.get(name or "", -1)

    def follow(self, event: Event) -> tuple[Op, ...]:
        """The changes an event makes."""
        if event.event == "fuse":
            return tuple(self._fuse(event))
        if event.event == "rewrite":
            return tuple(self._rewrite(event))
        return ()

    def members(self, box: int) -> tuple[int, ...]:
        """The operations a box holds, or held when it went."""
        return tuple(self._members.get(box, ()))

    def ends_as(self, box: int) -> int:
        """The box that holds its contents in the end."""
        path = []
        while box in self._into:
            path.append(box)
            box = self._into[box]
        for step in path:
            self._into[step] = box
        return box

    def current(self) -> dict[str, int]:
        """The boxes there are, by name."""
        return dict(self._alive)

    def _fuse(self, event: Event) -> list[Op]:
        producer = self._alive.get(event.producer or "")
        # Horizontal fusion names the first of a row as everyone's consumer, which by then is the fusion.
        consumer = self._alive.get(event.consumer or "", self._alive.get(event.fusion or ""))
        if producer is None or consumer is None:
            return []
        ops = [] if producer == consumer else [self._join(producer, consumer, copy=event.duplicated)]
        self._launch(consumer, True)
        if event.fusion and event.fusion != self._name_of[consumer]:
            ops.append(self._rename(consumer, event.fusion))
        return ops

    def _rewrite(self, event: Event) -> list[Op]:
        family = family_of(event.rule or "")
        removed = [self._alive[n] for n in event.removed if n in self._alive]
        if family in _REMOVED or not event.added:
            return [self._remove(b) for b in removed if self._name_of[b] not in event.added]
        target = event.added[-1]
        target_box = self._alive.get(target)
        if family in _STANDS_FOR:
            return [
                self._replace(b, target_box) for b in removed if target_box is not None and b != target_box
            ]
        if not removed:
            return []
        ops: list[Op] = []
        for name in event.added[:-1]:
            if name not in self._alive:
                ops.append(self._appear(name))
        into = target_box if target_box is not None else removed[-1]
        for box in removed:
            if box != into:
                ops.append(self._join(box, into, copy=box in self._constants))
        self._launch(into, True)
        if target_box is None:
            ops.append(self._rename(into, target))
        return ops

    def _join(self, box: int, into: int, *, copy: bool) -> Op:
        self._members[into] |= self._members[box]
        if copy:
            return Change.COPY, box, into
        self._drop_box(box)
        self._into[box] = into
        return Change.MOVE, box, into

    def _remove(self, box: int) -> Op:
        self._drop_box(box)
        return Change.REMOVE, box, 0

    def _replace(self, box: int, by: int | None) -> Op:
        assert by is not None
        self._drop_box(box)
        return Change.REPLACE, box, by

    def _rename(self, box: int, name: str) -> Op:
        if self._alive.get(self._name_of[box]) == box:
            del self._alive[self._name_of[box]]
        self._alive[name] = self._ever[name] = box
        self._name_of[box] = name
        self.names.append(name)
        return Change.RENAME, box, len(self.names) - 1

    def _appear(self, name: str) -> Op:
        box = self.count
        self.count += 1
        self._members[box] = {}
        self._alive[name] = self._ever[name] = box
        self._name_of[box] = name
        self._launched.append(True)
        self.kernels += 1
        self.names.append(name)
        return Change.APPEAR, box, len(self.names) - 1

    def _drop_box(self, box: int) -> None:
        name = self._name_of[box]
        if self._alive.get(name) == box:
            del self._alive[name]
        self._launch(box, False)

    def _launch(self, box: int, launched: bool) -> None:
        self.kernels += launched - self._launched[box]
        self._launched[box] = launched


# A module cut into parts that can be drawn, each of whole kernels.
#
# A person reads no more than a few dozen boxes at a time, and a layout takes time that grows faster than its
# boxes. The parts follow the order in which a computation runs; where there is a choice they end where the
# framework's scope does.


MOST = 64
"""Operations of a region, unless one kernel alone holds more."""
ENOUGH = 32
"""From here on a region ends with its scope."""
FEW = 12
"""So few operations are no region of their own, whatever comes next."""


def regions_of(boxes: Boxes, operations: Sequence[Operation]) -> tuple[Region, ...]:
    """Every operation in its final kernels, the kernels in the order in which they run, nearly."""
    members: dict[int, dict[int, None]] = {}
    for box in range(boxes.count):
        members.setdefault(boxes.ends_as(box), {}).update(dict.fromkeys(boxes.members(box)))
    order = _order(members, boxes, operations)
    by_computation: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    for box, members_of in sorted(members.items(), key=lambda pair: (order[pair[0]], pair[0])):
        inside = tuple(sorted(members_of))
        computation = operations[inside[-1]].computation if inside else 0
        by_computation.setdefault(computation, []).append((box, inside))
    found: list[Region] = []
    for computation, kernels in sorted(by_computation.items()):
        found += (Region(computation, tuple(part)) for part in _parts(kernels, operations))
    return tuple(found)


def _order(
    members: dict[int, dict[int, None]], boxes: Boxes, operations: Sequence[Operation]
) -> dict[int, int]:
    """A kernel stands at its last operation, an input that is none where it is first read."""
    order = {box: max(members_of, default=box) for box, members_of in members.items()}
    sources = {
        box
        for box, members_of in members.items()
        if members_of and not any(operations[n].operands for n in members_of)
    }
    first: dict[int, int] = {}
    for n, operation in enumerate(operations):
        reader = boxes.ends_as(n)
        if reader not in sources:
            for operand in operation.operands:
                source = boxes.ends_as(operand)
                if source in sources:
                    first[source] = min(first.get(source, order[reader]), order[reader])
    return order | first


def _parts(
    kernels: Iterable[tuple[int, tuple[int, ...]]], operations: Sequence[Operation]
) -> Iterable[list[tuple[int, tuple[int, ...]]]]:
    part: list[tuple[int, tuple[int, ...]]] = []
    size, scope = 0, ""
    for box, inside in kernels:
        here = "/".join(operations[inside[-1]].op_name.split("/")[:-1][:4]) if inside else scope
        leaves = bool(here) and here != scope
        if (size > FEW and size + len(inside) > MOST) or (size >= ENOUGH and leaves):
            yield part
            part, size = [], 0
        part.append((box, inside))
        size += max(1, len(inside))
        scope = here or scope
    if part:
        yield part
