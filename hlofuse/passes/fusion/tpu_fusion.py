"""The kernels that conditions learnt from XLA:TPU predict, in the order of XLA's common fusion driver."""

from typing import Any

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.analysis.kernels import is_kernel, launched_computations
from hlofuse.ir import Computation, Dims, Instruction, Instructions, Module, copy_module, numbered, reach
from hlofuse.ir.names import own_name
from hlofuse.releases import AROUND_FUSION
from hlofuse.rules.instruction_fusion import NOTHING_AGAINST, may_fuse_into_in_place, producer_is_root
from hlofuse.rules.tpu_fusion import RULES, is_created, is_loop, is_pool, kind, readers
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import OnlySkipped
from .instruction_fusion import FusionDriver, InstructionFusion

_WRITES = "dynamic-update-slice"


class _Driver(FusionDriver):
    rules = (*RULES, producer_is_root, may_fuse_into_in_place)

    def prepare(self) -> None:
        self.closed = set[str | None]()
        for computation in launched_computations(self.module):
            ends = _ends(computation)
            for x in computation.post_order():
                _move_end_of_softmax(x, ends, self.closed)
            self.state.ends |= ends

    def should_fuse(self, consumer: Instruction, operand_index: int) -> Verdict:
        # Memory that nothing has been written to is no value: who writes to it first allocates it.
        is_empty = custom_call_target(consumer.operands[operand_index]) == "AllocateBuffer"
        return Verdict(NOTHING_AGAINST) if is_empty else super().should_fuse(consumer, operand_index)

    def unfusible(self, computation: Computation) -> dict[Instruction, Verdict]:
        return {}


def _ends(computation: Computation) -> set[Instruction]:
    """The last instruction of each product's kernel, which goes on while one value leaves it.
    It ends before the values get wider, for what reads them to widen them. A pool takes the work before it
    from the product, and ends after that on its result."""
    order = numbered(computation.post_order())
    pools = [x for x in order if is_pool(x)]
    taken = reach(pools, lambda x: [o for o in x.operands if is_loop(o) and o.user_count == 1])
    claimed, ends = {*taken}, {_last_alone(x, x.rank) for x in pools}
    products = [x for x in order if x.opcode == "convolution"]
    ranks = {x: _rank(x) for x in products}
    products.sort(key=lambda x: (ranks[x], -order[x]))
    for product in products:
        kernel, grown = [product], [product]
        while True:
            following = {u for x in grown for u in x.users} - {*grown}
            x = min(following, key=order.__getitem__, default=product)
            if x in claimed and x.opcode != "convolution" and product.user_count > 1:
                kernel = [product]
            goes_on = (is_loop(x) or x.is_bitcast) and x.is_array and x not in claimed
            if x is product or not goes_on or x.element_count != product.element_count:
                break
            grown.append(x)
            is_result = x.is_root or any(u.opcode == "tuple" for u in x.users)
            is_wider = x.byte_size > kernel[-1].byte_size
            leaves_one = all({*grown}.issuperset(k.users) and not k.is_root for k in grown[:-1])
            if leaves_one and (is_result or not is_wider):
                kernel = grown[:]
        claimed.update(kernel)
        ends.add(kernel[-1])
    return ends


def _rank(product: Instruction) -> int:
    """Its place among products that meet: those with one reader that compute a larger operand come first."""
    if product.user_count > 1:
        return 2
    operands = [(o, without_bitcasts(o)) for o in product.operands]
    size = product.byte_size
    larger = [(o, x) for o, x in operands if is_loop(x) and o.byte_size > size]
    if any(o.user_count == x.user_count == 1 for o, x in larger):
        return 0
    sliced = any(x.opcode == "dynamic-slice" and x.byte_size >= size for _, x in operands)
    return 1 if larger or sliced else 2


def _move_end_of_softmax(greatest: Instruction, ends: set[Instruction], closed: set[str | None]) -> None:
    """End a kernel where one subtracts the greatest element of each row, of three or more dimensions, unless
    a product alone reads the softmax. A product's kernel goes on up to there. The kernel divides as well
    unless a product or copy reads the quotient. Nothing joins one that ends before its quotient or a log."""
    if not greatest.is_reduce or greatest.to_apply.root.opcode != "maximum":
        return
    rows = greatest.operand
    others = [u for u in rows.users if u is not greatest]
    spread = [u for u in greatest.users if u.is_broadcast]
    is_inner = {*greatest.dimensions} <= {*rows.minor_to_major[:2]}
    if rows.rank < 3 or not is_inner or len(others) != 1 or not spread:
        return
    end = others[0]
    if end.opcode != "subtract" or end.second is not spread[0]:
        return
    end = _last_alone(end, rows.rank)
    quotients = [u for u in end.users if u.opcode == "divide" and u.operand is end]
    readers = {u.opcode for q in quotients or [end] for u in _last_alone(q, rows.rank).users}
    is_read_as_is = any(_last_alone(q, rows.rank) is q for q in quotients)
    is_lane = greatest.dimension == rows.minor_to_major[0]
    is_alone = end.user_count == 2 or is_lane or is_read_as_is
    is_narrowed = any(_last_alone(q, rows.rank).byte_size < q.byte_size for q in quotients)
    is_stored = is_narrowed and rows.opcode != "convert"
    if "convolution" in readers and is_alone and not (is_stored if quotients else rows in ends):
        return
    is_difference = end.opcode == "subtract"
    if is_difference and not all(map(is_loop, end.users)):
        return
    ends.discard(rows)
    if not quotients or not readers.isdisjoint(("convolution", "copy")):
        ends.add(end)
        has_gradient = any(u.opcode == "exponential" and u.user_count > 1 for u in end.users)
        if quotients or (is_difference and not has_gradient):
            closed.add(own_name(end.origin))


def _last_alone(x: Instruction, rank: int) -> Instruction:
    """The end of a chain of elementwise operations, each with one reader."""
    while x.user_count == 1 and is_loop(x.user) and x.user.rank == rank:
        x = x.user
    return x


class Prediction(OnlySkipped):
    """The kernels that the conditions predict for a module before XLA:TPU's fusion passes."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._refused = dict[tuple[str | None, str | None], str]()
        module = copy_module(module)
        names = (i.name for computation in module.computations for i in computation.post_order())
        self._place: dict[str | None, int] = {name: k for k, name in enumerate(names)}
        module.begin_run()
        driver = _Driver(InstructionFusion(release=AROUND_FUSION), module, self)
        driver.run()
        self._closed = driver.closed
        self._groups = dict[Instruction, Instructions]()
        for computation in launched_computations(module):
            self._merge(computation)
        self._kernels = dict[str | None, set[int]]()
        for kernel, group in self._groups.items():
            for i in kernel.fused_computation if is_created(kernel) else (kernel,):
                self._kernels.setdefault(own_name(i.origin), set()).add(id(group))

    def ineligible(self, *args: Any, **kwargs: Any) -> None:
        producer, consumer, verdict = args
        for reader, _ in readers(producer, consumer):
            self._refused[own_name(producer.origin), own_name(reader.origin)] = verdict.rule.code

    def together(self, producer: Instruction, consumer: Instruction) -> bool:
        """True if one kernel is predicted to hold both."""
        first = self._kernels.get(producer.name, set())
        second = self._kernels.get(consumer.name, set())
        return not first.isdisjoint(second)

    def refusal(self, producer: Instruction, consumer: Instruction) -> str | None:
        """The code of the condition that keeps the two apart; None where the prediction fuses them."""
        if self.together(producer, consumer):
            return None
        for value in consumer.operands:
            reader, code = consumer, self._refused.get((value.name, consumer.name))
            while value.operands and not is_kernel(value):
                value, reader = value.operand, value
                code = code or self._refused.get((value.name, reader.name))
            if value is producer and code is not None:
                return code
        return None

    def _merge(self, computation: Computation) -> None:
        """Make kernels with several results: of a producer that stays in memory and readers of its size. An
        elementwise producer takes in its last reader, or reductions, a product those of one shape. A kernel
        holds one product: the last in the module that may join."""
        groups, order = self._groups, [x for x in computation.post_order() if is_kernel(x)]
        groups.update((x, [x]) for x in order)
        place = {x: k for k, x in enumerate(order)}
        products = [x for x in order if kind(x) == "convolution"]
        products.sort(key=lambda x: self._place[own_name(_root(x).origin)], reverse=True)
        for producer in (*products, *(x for x in order if kind(x) != "convolution")):
            is_single = kind(producer) == "loop"
            users = sorted({*filter(is_kernel, (u for _, u in _read_by(producer)))}, key=place.__getitem__)
            if is_single:  # the last first; reductions to one shape stand where their first does
                sums = {str(u.shape): place[u] for u in reversed(users) if kind(u) == "reduce"}
                places = {u: sums[str(u.shape)] if kind(u) == "reduce" else place[u] for u in users}
                users.sort(key=places.__getitem__, reverse=True)
            else:
                users.sort(key=lambda u: kind(u) == _WRITES)
            taken: Instruction | None = None
            for user in users:
                if taken is not None and not (_is_angle(producer) or _is_more(taken, user, is_single)):
                    continue
                if self._may_join(producer, user):
                    taken = user
                    joined = groups[producer] + groups[user]
                    groups.update(dict.fromkeys(joined, joined))

    @staticmethod
    def _is_alone(angle: Instruction) -> bool:
        """True for the only sine or cosine of an angle, if it is no result."""
        siblings = {u for o in angle.operands for u in o.users if u is not angle}
        return not any(map(_is_angle, siblings)) and all(map(is_kernel, angle.users))

    def _may_join(self, producer: Instruction, user: Instruction) -> bool:
        first = self._groups[producer]
        second = self._groups[user]
        kinds = kind(producer), kind(user)
        root = _root(producer)
        if own_name(root.origin) in self._closed and (kinds[1] == "loop" or root.opcode == "subtract"):
            return False
        is_written = kinds == ("convolution", _WRITES) and user.operand.is_get_tuple_element
        is_read = kinds[0] in ("loop", "convolution") and kinds[1] in ("loop", "reduce")
        if first is second or not (is_read or is_written):
            return False
        if producer.shape.is_effective_scalar or (_is_angle(producer) and not self._is_alone(producer)):
            return False
        read = [edge for x in first for edge in _read_by(x) if edge[1] in second]
        if is_read and any(kind(x) == "reduce" or sorted(_size(u)) != sorted(_size(x)) for x, u in read):
            return False
        if any(r.opcode in ("copy", "pad") for edge in read for r, _ in readers(*edge)):
            return False
        groups = self._groups
        both = {*first, *second}
        if sum(kind(x) == "convolution" for x in both) > 1:
            return False
        after = [u for x in first for _, u in _read_by(x) if u not in both]
        following = reach(after, lambda x: [u for k in groups.get(x, [x]) if k not in both for u in k.users])
        return set(second).isdisjoint(following)


def _read_by(kernel: Instruction) -> list[tuple[Instruction, Instruction]]:
    """Readers of the result, as it is or through a bitcast, each after what it reads."""
    views = [kernel, *(u for u in kernel.users if u.is_bitcast)]
    return [(x, u) for x in views for u in x.users if not u.is_bitcast]


def _is_more(taken: Instruction, user: Instruction, is_single: bool) -> bool:
    """True if a kernel takes in one more: reductions of a loop, equal shapes of a product."""
    return {kind(taken), kind(user)} == {"reduce"} if is_single else str(user.shape) == str(taken.shape)


def _is_angle(kernel: Instruction) -> bool:
    """True for a kernel that ends with a sine or cosine."""
    return _root(kernel).opcode in ("sine", "cosine")


def _root(kernel: Instruction) -> Instruction:
    return kernel.fused_root if is_created(kernel) else kernel


def _size(kernel: Instruction) -> Dims:
    root = _root(kernel)
    shape = root.operand.shape if root.is_reduce else root.shape
    return shape.leaf_shapes[0].dimensions
