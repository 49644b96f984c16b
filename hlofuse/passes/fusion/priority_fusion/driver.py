"""One computation: the queue, a step at a time (`PriorityFusionQueue` and `PriorityFusion::RunImpl`)."""

from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import TypeAlias

from msgspec import Struct

from hlofuse.analysis.elementwise import ALWAYS_FUSIBLE, is_fusible
from hlofuse.cost.combined import CombinedModel
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.ticks import INFINITE, microseconds
from hlofuse.cost.tiling.constraints import Tiling, backend_config_text
from hlofuse.ir.fusing import (
    Inside,
    append_producer,
    convert_to_fusion,
    merge_extra_output,
    merge_fusion,
    set_fusion_kind,
)
from hlofuse.ir.graph import Computation, Instruction, InstructionMap, Instructions, InstructionSequence
from hlofuse.ir.opcodes import values
from hlofuse.ir.removing import set_attribute
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, is_small_constant, may_be_fused
from hlofuse.rules.priority_fusion.conditions import BITCAST_FIRST, PAYS, SMALL_CONSTANT
from hlofuse.trace import Recorder
from .legality import Legality
from .observers import Observer, TieBreaker

Chooser: TypeAlias = Callable[[InstructionSequence], Instruction]
"""Picks one of several producers with the same, greatest priority."""
_ID_BITS = 32


class PriorityQueue(Struct):
    """Entries that were changed or removed stay in the heap until they come to its top. One that has become a
    fusion since comes with its new id, which is greater, ahead of its old one."""

    _choose: Chooser | None = None
    waiting: dict[Instruction, int] = {}  # Queued instructions with their priorities
    _heap: list[int] = []  # Priority and, in the last bits, id, as one negative number: compared at once
    _of: dict[int, Instruction] = {}  # the producer of each entry
    _equal: dict[Instruction, int] = {}
    """Instructions of the greatest priority, taken from the heap until each is chosen."""

    def set(self, producer: Instruction, priority: int) -> None:
        if self.waiting.get(producer) != priority:
            if self._equal:
                self._equal.pop(producer, None)
            self.waiting[producer] = priority
            entry = -(priority << _ID_BITS) - producer.id
            self._of[entry] = producer
            heappush(self._heap, entry)

    def discard(self, producer: Instruction) -> None:
        self.waiting.pop(producer, None)
        if self._equal:
            self._equal.pop(producer, None)

    def is_tied(self, priority: int, producer: Instruction) -> bool:
        return self.waiting.get(producer) == priority

    def pop(self) -> tuple[Instruction, int] | None:
        """Take out the producer whose turn it is, with its priority; None when none is left."""
        if self._choose is not None:
            return self._pop_chosen(self._choose)
        heap, waiting, of = self._heap, self.waiting, self._of
        while heap:
            entry = heappop(heap)
            producer, priority = of[entry], -entry >> _ID_BITS
            if waiting.get(producer) == priority:
                del waiting[producer]
                return producer, priority
        return None

    def _pop_chosen(self, choose: Chooser) -> tuple[Instruction, int] | None:
        heap, waiting, equal = self._heap, self.waiting, self._equal
        greatest = -next(iter(equal.values())) >> _ID_BITS if equal else 0
        if equal and heap and -heap[0] >> _ID_BITS > greatest:  # one that is greater has come
            for entry in equal.values():
                heappush(heap, entry)
            equal.clear()
        left = len(equal)
        while heap and (not equal or -heap[0] >> _ID_BITS == greatest):
            entry = heappop(heap)
            producer = self._of[entry]
            greatest = -entry >> _ID_BITS
            if waiting.get(producer) == greatest:
                equal.setdefault(producer, entry)
        if not equal:
            return None
        if 0 < left < len(equal):
            equal = self._equal = dict(sorted(equal.items(), key=lambda item: item[1]))
        chosen = choose(list(equal))
        del equal[chosen]
        return chosen, waiting.pop(chosen)


_KINDS = {
    "loop": "kLoop",
    "triton": "kCustom",
    "custom": "kCustom",
    "cudnn": "kCustom",
    "sort": "kCustom",
}


def make_fusion(instruction: Instruction, kind: str) -> None:
    if instruction.is_fusion:
        set_fusion_kind(instruction, kind)
    else:
        convert_to_fusion(instruction, kind)


def kind_of(launch: Launch) -> str:
    """The kind of a fusion that is emitted so."""
    return _KINDS.get(launch.kind, "kInput")


def fuse_constants(
    computation: Computation, model: CombinedModel, legality: Legality, recorder: Recorder
) -> bool:
    """True if there was one to fuse."""
    changed = False
    kinds = dict[Instruction, str]()
    for constant in [x for x in computation if is_small_constant(x)]:
        for user in list(constant.users):
            if legality.constant_refused(constant, user):
                continue
            name = user.name
            # With a constant in, the kernel has the same roots and heroes.
            kind = kinds.get(user) or kind_of(model.launch(user))
            replaced = [constant.name] if user.is_fusion else [constant.name, name]
            make_fusion(user, kind)
            append_producer(user, constant)
            kinds[user] = kind
            recorder.apply(SMALL_CONSTANT, computation.name, replaced, [user])
            changed = True
    return changed


_NEVER_CANDIDATES = values("parameter tuple get-tuple-element")
_READ_ACROSS = values("copy transpose")
"""Opcodes whose cost depends on the memory order of their operand (`IsReadCoalescedHeuristic`)."""
_NOT_UPDATED = values("parameter constant get-tuple-element")


class Driver:
    """Fuses within one computation until nothing pays any more."""

    def __init__(
        self,
        computation: Computation,
        model: CombinedModel,
        legality: Legality,
        recorder: Recorder,
        tie_breaker: TieBreaker | None = None,
        observers: Sequence[Observer] = (),
        *,
        extra_outputs: bool = False,
    ) -> None:
        self._computation = computation
        self._model, self._release = model, model.release
        self._launch = model.device.launch_ticks
        self._legality = legality
        self._recorder = recorder
        self._tie_breaker = tie_breaker
        self._observers = observers
        self._extra_outputs = extra_outputs
        # Of producers refused by some user: the Triton fusion that can also write them out.
        self._preferred = InstructionMap()
        self._queue = PriorityQueue(tie_breaker.choose if tie_breaker is not None else None)
        # What the step under way has touched, in the order it did.
        self._marked = dict[Instruction, None]()
        self._new_consumers = dict[Instruction, Instructions]()
        self._removed_times = dict[Instruction, tuple[int, int]]()

    def run(self) -> bool:
        candidates = []
        for instruction in self._computation.post_order():
            if instruction.opcode in _READ_ACROSS:
                self._estimate(instruction)
            if instruction.opcode in _NEVER_CANDIDATES or not instruction.users:
                continue
            if instruction.opcode in ALWAYS_FUSIBLE or is_fusible(instruction):
                candidates.append(instruction)
        self._set_priorities(candidates)
        changed = False
        while (entry := self._queue.pop()) is not None:
            producer, priority = entry
            preferred = self._preferred.get(producer)
            consumers = list(producer.users) if preferred is None else [preferred]
            if self._observers and preferred is None:
                if self._tie_breaker is not None:
                    consumers = self._tie_breaker.order_consumers(producer, consumers)
                for observer in self._observers:
                    observer.fusing(producer, consumers, partial(self._queue.is_tied, priority))
            if is_fusible_bitcast(producer, self._release):
                consumers = [c for c in consumers if self._legality.verdict(producer, c) is None]
            if consumers:
                changed |= self._step(producer, consumers, priority)
        return fuse_constants(self._computation, self._model, self._legality, self._recorder) or changed

    def _estimate(self, instruction: Instruction) -> None:
        """Cache the current run time (`UpdatePerformanceModelCache`); later calls nearly always agree."""
        if self._model.cache[instruction].run is None and may_be_fused(instruction, self._release):
            self._model.run_time(instruction)

    def _set_priorities(self, producers: Instructions) -> None:
        """`ComputeAndSetPriorities`."""
        if self._tie_breaker is not None:
            self._tie_breaker.order_updates(producers)
        work_out, queue = self._priority, self._queue
        waiting = queue.waiting
        for producer in producers:
            # XLA enters them when all are worked out; each looks at no other's entry.
            priority = work_out(producer)
            if priority is not None and priority >= 0:
                queue.set(producer, priority)
            elif producer in waiting:
                queue.discard(producer)

    def _priority(self, producer: Instruction) -> int | None:
        """Ticks that fusing saves; None if it is not possible (`CalculateProducerPriority`)."""
        if self._preferred:
            self._preferred.pop(producer, None)
        opcode, legality = producer.opcode, self._legality
        if opcode == "bitcast" and is_fusible_bitcast(producer, self._release):
            return INFINITE
        if opcode == "constant":
            return None
        if self._tie_breaker is not None:
            self._tie_breaker.order_users(producer)
        refusal = legality.refusal(producer)
        if refusal is not None:
            preferred = legality.sole_extra_output(producer) if self._extra_outputs else None
            verdict, user = refusal
            if preferred is not None:
                self._preferred[producer] = preferred
                return self._saved_by(producer, preferred)
            self._recorder.ineligible(producer, user, verdict)
            for observer in self._observers:
                observer.refused(producer, verdict, legality)
            return None
        removed = self._removed_times.get(producer)
        users = producer.users if removed is None else self._new_consumers[producer]
        fused, unfused = self._model.times(producer, users)
        launches = self._launch * len(users)
        fused += launches
        unfused += launches + self._launch
        current = 0
        if removed is not None:
            # Only what this step changed is added; what it did away with is subtracted.
            fused -= removed[0]
            unfused -= removed[1] + self._launch
            current = self._queue.waiting[producer]
        us_fused, us_unfused = microseconds(fused), microseconds(unfused)
        self._recorder.priority(producer, us_fused, us_unfused)
        for observer in self._observers:
            observer.priority(producer, us_fused, us_unfused)
        return INFINITE if unfused >= INFINITE else current + unfused - fused

    def _saved_by(self, producer: Instruction, user: Instruction) -> int:
        """Ticks saved where one user computes the producer and writes it out as well."""
        model = self._model
        together = model.pair_time(producer, user, self._legality.pair(producer, user)).ticks
        return self._launch + model.run_time(producer).ticks + model.run_time(user).ticks - together

    def _update_priorities(self) -> None:
        # XLA's is a hash set in no order of its own. Where it matters which of two twins is worked out
        # first, most compilations took the later one.
        marked = list(reversed(self._marked))
        for instruction in marked:
            if instruction.opcode in _READ_ACROSS:
                self._estimate(instruction)
        self._set_priorities(marked)
        self._marked, self._new_consumers, self._removed_times = {}, {}, {}

    def _step(self, producer: Instruction, consumers: Instructions, priority: int) -> bool:
        """Fuse the producer into the consumers, bitcasts left out. A consumer that is no fusion becomes one.
        As XLA puts a new instruction in its place, what is known of the old one is forgotten."""
        legality, preferred, marked, new = self._legality, self._preferred, self._marked, self._new_consumers
        extra = producer in preferred
        tilings = legality.tilings_of(producer, consumers, extra)
        bitcast = is_fusible_bitcast(producer, self._release)
        rule = BITCAST_FIRST if bitcast else PAYS
        figures = {} if bitcast else {"us_saved": microseconds(priority)}
        inside = Inside(producer) if producer.is_fusion and not extra else None
        changed = False
        for consumer in consumers:
            if is_fusible_bitcast(consumer, self._release):
                continue
            changed = True
            name = consumer.name
            pair = legality.ids.pair(producer, consumer, extra)
            created = not consumer.is_fusion
            self._fuse(producer, consumer, inside, tilings.get(consumer), extra)
            legality.ids.fused(consumer, pair)
            for observer in self._observers:
                observer.fused(consumer, producer.name, name)
            self._recorder.fuse(
                producer,
                name,
                consumer,
                rule=rule,
                kind="multi-output" if extra else "producer-consumer",
                created=created,
                duplicated=bool(producer.users),
                figures=figures,
            )
            if preferred:
                preferred.pop(consumer, None)
            if created:
                marked.pop(consumer, None)
                self._queue.discard(consumer)
            for operand in consumer.operands:
                opcode = operand.opcode
                if operand is producer or opcode in _NOT_UPDATED:
                    continue
                if opcode not in ALWAYS_FUSIBLE and not is_fusible(operand):
                    continue
                marked[operand] = None
                if operand in new:
                    new[operand].append(consumer)
                else:
                    new[operand] = [consumer]
                if preferred and preferred.get(operand) is consumer:
                    del preferred[operand]
            marked[consumer] = None
        self._note_removed_times(producer, consumers)
        if not producer.users:
            marked.pop(producer, None)
            self._queue.discard(producer)
            if not extra:
                self._computation.remove_instruction(producer)
            self._model.forget(producer)
        for consumer in consumers:
            self._model.invalidate(consumer)
        self._update_priorities()
        return changed

    def _fuse(
        self,
        producer: Instruction,
        consumer: Instruction,
        inside: Inside | None,
        tiling: Tiling | None,
        extra_outputs: bool,
    ) -> None:
        """`PriorityFusion::Fuse`."""
        model = self._model
        pair = self._legality.pair(producer, consumer)
        kind = kind_of(pair.launch or model.pair_launch(producer, consumer, pair))
        kind = "kCustom" if tiling is not None else kind
        make_fusion(consumer, kind)
        if extra_outputs:
            merge_extra_output(consumer, producer)
        elif producer.is_fusion:
            merge_fusion(consumer, producer, inside)
        else:
            append_producer(consumer, producer)
        if tiling is not None:
            set_attribute(consumer, "backend_config", backend_config_text(tiling.config, model.release))
        if extra_outputs:
            model.changed(consumer)
        else:
            model.add_fusion(consumer, pair)
        self._legality.grown(consumer, stays=kind != "kCustom" and not extra_outputs)

    def _note_removed_times(self, producer: Instruction, consumers: Instructions) -> None:
        """Cache the times that fusing removed from other sums (`ComputeRuntimesOfRemovedConsumers`)."""
        waiting = self._queue.waiting
        candidates = [
            operand
            for operand in self._new_consumers
            if operand in waiting and not is_fusible_bitcast(operand, self._release)
        ]
        self._removed_times = self._model.cached_times(candidates, (*consumers, producer))
