"""The order of a module's computations while passes add and remove some (`xla/online_topsort.h`). XLA keeps a
topological order with the two-way search of Bender et al. (ACM TALG 12(2), 2015), sections 2 and 4:
computations have a level and an index, and what is new or changed comes first on its level."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from .graph import Computation, Computations, Module, callees

_NUMBERED = re.compile(r".*\.(\d+)", re.DOTALL)


class OnlineOrder(Struct):
    """Callers before callees, while computations are added, removed and called."""

    _level: dict[Computation, int] = {}
    _index: dict[Computation, int] = {}
    _id: dict[Computation, int] = {}  # unique ids: callers and callees are visited by them
    _next_index: int = 0
    _edges: int = 0
    _delta: int = 0
    """The limit of edges visited by a backward search: min(edges^(1/2), nodes^(2/3)), rounded up."""
    _sorted: Computations | None = None  # the answer, until it changes

    def copy(self, computations: Mapping[Computation, Computation]) -> "OnlineOrder":
        new = OnlineOrder()
        new._level, new._index, new._id = (
            {computations[c]: value for c, value in d.items() if c in computations}
            for d in (self._level, self._index, self._id)
        )
        new._next_index, new._edges, new._delta = self._next_index, self._edges, self._delta
        return new

    def post_order(self) -> Computations:
        """Callees before callers (`HloModule::MakeComputationPostOrder`)."""
        if self._sorted is None:
            self._sorted = sorted(self._level, key=self._place, reverse=True)
        return self._sorted.copy()

    def add(self, computation: Computation) -> None:
        self._level[computation] = 0
        self._id[computation] = len(self._id)
        self._move_to_front(computation)
        self._update_delta()
        for caller in self._callers(computation):
            self.add_edge(caller, computation)
        for callee in self._callees(computation):
            self.add_edge(computation, callee)

    def remove(self, computation: Computation) -> None:
        self._level.pop(computation, None)
        self._index.pop(computation, None)
        self._sorted = None

    def add_edge(self, caller: Computation, callee: Computation) -> None:
        """Add the edge of an instruction of `caller` that calls `callee`."""
        level = self._level
        if caller not in level or callee not in level:
            return
        self._edges += 1
        self._update_delta()
        if self._place(caller) < self._place(callee):
            return
        backward, is_cut = self._search_backward(caller)
        forward = Computations()
        if is_cut:
            backward = []
            level[callee] = level[caller] + 1
            self._search_forward(callee, forward)
        elif level[callee] < level[caller]:
            level[callee] = level[caller]
            self._search_forward(callee, forward)
        for computation in (*forward, *reversed(backward)):
            self._move_to_front(computation)

    def _place(self, computation: Computation) -> tuple[int, int]:
        return self._level[computation], self._index[computation]

    def _move_to_front(self, computation: Computation) -> None:
        self._index[computation] = self._next_index
        self._next_index -= 1
        self._sorted = None

    def _update_delta(self) -> None:
        nodes = len(self._level)
        while self._delta**2 < self._edges and self._delta**3 < nodes**2:
            self._delta += 1

    def _search_backward(self, start: Computation) -> tuple[Computations, bool]:
        """Callers on the same level, each after its own callers; True if the search was cut off."""
        found = []
        visited = set()
        edges = 0
        agenda = [(start, False)]
        while agenda:
            computation, is_done = agenda.pop()
            if is_done:
                found.append(computation)
                continue
            if computation in visited:
                continue
            visited.add(computation)
            agenda.append((computation, True))
            for caller in self._callers(computation) if edges < self._delta else ():
                if self._level[caller] != self._level[computation]:
                    continue
                edges += 1
                if edges >= self._delta:
                    return found, True
                agenda.append((caller, False))
        return found, False

    def _search_forward(self, start: Computation, found: Computations) -> None:
        """Raise the callees of `start` that have to move; `found` gets each after its callees."""
        visited = set()
        raised, agenda = {start}, [(start, False)]
        while agenda:
            computation, is_done = agenda.pop()
            if is_done:
                found.append(computation)
            elif computation not in visited and computation in raised:
                visited.add(computation)
                agenda.append((computation, True))
                for callee in self._callees(computation):
                    agenda.append((callee, False))
                    if self._level[computation] > self._level[callee]:
                        self._level[callee] = self._level[computation]
                        raised.add(callee)

    def _callers(self, computation: Computation) -> Computations:
        return self._by_id(i.computation for i in computation.callers)

    def _callees(self, computation: Computation) -> Computations:
        return self._by_id(callees(computation))

    def _by_id(self, computations: Iterable[Computation | None]) -> Computations:
        own = {c for c in computations if c is not None and c in self._level}
        return sorted(own, key=self._id.__getitem__)


def order_of_front_end(module: Module) -> OnlineOrder:
    """The order of computations in a module before optimizations. A front end creates callees first: as the
    HLO proto lists them, else by the numbers in their names. So are instructions where these count all."""
    written = module.computation_post_order()
    place = {c: k for k, c in enumerate(module.processing_order)}
    if len(place) < len(written):
        numbers = {c: int(m[1]) for c in written if (m := _NUMBERED.fullmatch(c.name)) is not None}
        place = numbers if len(numbers) == len(written) else {}
    counted = {i: int(m[1]) for c in written for i in c if (m := _NUMBERED.fullmatch(i.name)) is not None}
    if len(set(counted.values())) == sum(len(list(c)) for c in written):  # until 0.6 they are ids
        for computation in written:
            computation.reorder(sorted(computation, key=counted.__getitem__))
    order = OnlineOrder()
    for computation in sorted(written, key=lambda c: place.get(c, 0)):
        order.add(computation)
    return order
