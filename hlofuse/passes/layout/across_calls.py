"""Layouts on both sides of loops and branches, from 0.12 on: what one side has found, the other takes."""

from collections import defaultdict
from itertools import chain

from hlofuse.ir import Computation, Instruction, Record
from hlofuse.passes.loop.parts import body_of, condition_of
from .assignment import Buffer, LayoutAssignment, can_change_layout

Group = tuple[Buffer, ...]  # Those that should have one layout, the caller's first


class Link(Record, eq=False):
    """A loop or a branch. `given` has buffers of operand and parameter, of a loop also of condition, root and
    loop; `found` of root and conditional."""

    given: list[Group]
    found: list[Group]
    is_first: bool  # No earlier branch of the conditional may have laid out its result


class Links:
    """The links of one module, for computations that come callees first."""

    def __init__(self, layouts: LayoutAssignment, computations: list[Computation]) -> None:
        links = [_links_of(layouts, c) for c in computations]
        self._layouts = layouts
        self._outward, self._inward = list(chain(*links)), list(chain(*reversed(links)))
        self._of_source = defaultdict[Buffer, list[Group]](list)
        for group in chain.from_iterable(link.given for link in self._inward):
            self._of_source[group[0]].append(group)

    def agree(self, default: Buffer | None = None) -> None:
        """Hand layouts on until nothing changes: into one link after the other, and out of all after each, or
        after the last if a buffer got a default layout."""
        changed = True
        while changed:
            changed = self._hand_out() if default is None else self._hand_on(default)
            for link in self._inward:
                if self._hand_in(link):
                    changed = True
                    if default is None:
                        self._hand_out()
            if default is not None:
                changed |= self._hand_out()

    def _hand_on(self, default: Buffer) -> bool:
        """Give the layout to the groups of the buffer, then those of operands to what has none inside."""
        changed = False
        for group in chain.from_iterable(self._of_source.values()):
            changed |= default in group and self._take(group, (default,))
        self._layouts.propagate()
        for source, groups in self._of_source.items():
            for group in groups:
                changed |= group[1] not in self._layouts.of_buffer and self._take(group, (source,))
            self._layouts.propagate()
        return changed

    def _hand_out(self) -> bool:
        changed = False
        for link in self._outward:
            for group in link.given:
                changed |= self._take(group, group[1:4])
            for root, result in link.found:
                if link.is_first or result not in self._layouts.of_buffer:
                    changed |= self._take((result,), (root,))
            self._layouts.propagate()
        return changed

    def _hand_in(self, link: Link) -> bool:
        changed = False
        for groups, k in (
            ((link.given, 0), (link.found, -1)) if link.found else ((link.given, -1), (link.given, 0))
        ):
            for group in groups:
                changed |= group[k] in self._layouts.of_buffer and self._take(group, (group[1], group[k]))
            self._layouts.propagate()
        return changed

    def _take(self, group: Group, sources: Group) -> bool:
        """Give a group the layout of the first source that has one; True if anything changed."""
        layouts = self._layouts
        order = next((layouts.of_buffer[s].order for s in sources if s in layouts.of_buffer), None)
        if order is None:
            return False
        changed = False
        for buffer in group:
            found = layouts.of_buffer.get(buffer)
            if found is None:
                layouts.set_buffer_layout(buffer, order, mandatory=False)
            elif found.order != order and not found.mandatory:
                layouts.set_buffer_layout(buffer, order, priority=layouts.priority + 1)
                for user, number in layouts.readers(buffer):
                    if not can_change_layout(user):
                        layouts.set_array_operand_layout(user, number, order, priority=layouts.priority + 1)
            else:
                continue
            changed = True
        return changed


def _links_of(layouts: LayoutAssignment, computation: Computation) -> list[Link]:
    links = []
    for x in computation.post_order():
        if x.is_while:
            sides = x.operand, body_of(x).parameter, condition_of(x).parameter, body_of(x).root, x
            links.append(Link(_groups(layouts, *sides), [], True))
        elif x.opcode == "conditional":
            for k, branch in enumerate(x.called_computations):
                given = _groups(layouts, x.operands[k + 1], branch.parameter)
                links.append(Link(given, _groups(layouts, branch.root, x), not k))
    return links


def _groups(layouts: LayoutAssignment, *sides: Instruction) -> list[Group]:
    buffers = [layouts.buffers.of(side) for side in sides]
    indices = [i for i, s in sides[0].shape.subshapes() if s.is_array and s.rank > 1]
    return [tuple(found[i] for found in buffers) for i in indices]
