"""The work of a kernel on a CPU, as counts that a calibrated device has rates for.

XLA:CPU writes a kernel as loops over the elements of its result in memory order
(`xla/backends/cpu/codegen/emitters/cpu_fusion_emitter.cc`). The innermost loop decides whether LLVM uses
vectors: each value is followed from the result to the inputs, with the distance between the elements that two
iterations of this loop read."""

import math
from collections import defaultdict
from collections.abc import Container, Mapping

from hlofuse.analysis.convolution import dimension_numbers, window_dimensions, window_size
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.elementwise import is_elementwise, without_bitcasts
from hlofuse.analysis.flops import convolution_flops, dot_flops, first_leaf
from hlofuse.analysis.kernels import computed_in, end_of, inside, origin
from hlofuse.cost.gpu.shapes import strides_of
from hlofuse.ir import FLOATING_TYPES, Instruction, Ints, Record, Shape, values, with_trait
from hlofuse.ir.grouping import reach

Work = dict[str, float]  # Amounts by the name of their rate; each amount by its rate is a time in nanoseconds
FRESH = 32 << 20  # bytes from which on an allocation takes fresh pages from the system in each run (glibc)
_LINE = 64  # bytes of a cache line
_MOST_ACCESSES = 20_000  # values followed in one kernel; a larger one is not estimated
_FREE = values("parameter constant bitcast reshape tuple get-tuple-element broadcast copy")
_SLOW = with_trait("cpu-slow") | {"absolute"}
_EXTREME = values("maximum minimum")
_CHECKED_FOR_NAN = _EXTREME | {"clamp"}
_CHAINED = values("erf exponential exponential-minus-one log log-plus-one logistic rsqrt tanh")
_KINDS = {"u64": "s64", "pred": "s32", "c128": "c64"} | dict.fromkeys(
    "u32 u16 u8 s16 s8 u4 s4".split(), "s32"
)
"""Element types that have the rates of another one."""
_BYTES = values("pred u8 s8")  # element types that are converted at rates of their own
_SETS = 64  # sets of the first cache: a page of lines
_SET_LINES = 8  # lines that each holds
_SET_BYTES = 16 * _LINE  # bytes of a set of the second cache
_USABLE = 0.75  # the part of a cache that holds what is read again
_VECTOR = 5  # elements that a slow operation computes in the time of one
_NEAR = 8  # elements of one line are read as if they were neighbours
_SHORTEST = 8  # elements of a row of simple operations that LLVM writes out with vectors of several rows
_ROW = 16  # elements of a row that LLVM does not write out
_UNROLLED = 40  # elements of a row that LLVM does not unroll whole
_WHOLE = 245  # instructions up to which LLVM unrolls a loop whole (measured with bodies of 5 to 14)
_WHOLE_SUM = 325  # the same for a loop that reduces
_LOOP = 3  # of them, in each iteration: the store, the counter and its comparison
_DOT = 6  # instructions of an iteration that sums products
_CHECKED = 1.6  # polynomials of tiles with bounds for one
_INTERLEAVED = 4  # elements of a row of which LLVM takes one, with vectors
_STREAMED = 64  # elements of a row after which the rest arrives before it is read
_EXTREME_ROW = 0.35  # the time of a row's maximum, in sums
_REPEATED_STEP = 5  # the time of a row in a step that reads what is repeated, in sums (5 shapes measured)
_REDUCED_PART = 32_768  # elements of a row that YNNPACK reduces before it goes on with the next row
_FAR = 30.0  # a factor of angles whose quadrants no processor predicts
_UNPREDICTED = 2.5  # sines near 0 or in order, for one of such an angle (measured, jaxlib 0.11.1)
_PEELED = 7  # elements of padding before a row that LLVM makes iterations of their own (measured with tanh)
_FEW_PADS = 8  # whose conditions fit into the registers of a loop (measured with 1 to 20)
_MOST_PADS = 15  # in a loop that keeps its vectors (measured with 2 to 64 shifted rows, float32)
_BYTES_OF_A_VECTOR = 4  # for one number of 32 bits (measured with additions, comparisons and shifts)
_JOINED = 1 / 3  # elements of joined rows for one that is read at one place, half of a scattered column's
_PREDICTED = 4_000  # choices of rows that a processor remembers from run to run (measured up to 24,000)
_COVERED = 50  # instructions of an element that its reads cover (measured with chains of up to 30 steps)
_REPEATED = 25  # sorted updates of one place, half of which wait for the update before
_SMALL_PRODUCT = 32  # a product with a side up to this length has rates of its own


class Caches(Record):
    """Sizes of a core's caches in bytes."""

    l1: int
    l2: int
    l3: int

    def level(self, size: float, stride: int = _LINE) -> str:
        """The smallest cache that holds `size` bytes, or `memory`. Lines that are `stride` bytes apart share
        some of the sets of a core's caches: these hold fewer. Most of what is `near l3` was just written."""
        l1, l2 = self.l1, self.l2
        if stride > _LINE:
            l1 //= math.gcd(stride // _LINE, _SETS)
            l2 //= math.gcd(stride // _LINE, self.l2 // _SET_BYTES)
        size /= _USABLE
        if size <= self.l2:
            return "l1" if size <= l1 else "l2" if size <= l2 else "near l3"
        return "near l3" if size <= 4 * self.l2 else "l3" if size <= self.l3 else "memory"


def add_work(found: defaultdict[str, float], more: Mapping[str, float], times: float = 1.0) -> None:
    """Add some work, done so many times, to `found`."""
    for name, amount in more.items():
        found[name] += amount * times


def work_of(
    kernel: Instruction,
    emitter: str,
    parts: float,
    caches: Caches,
    moved: int,
) -> Work | None:
    """The work of one run; None where nothing is known of the kernel. `emitter` says who runs it, in the
    words of the rules (`rules/cpu_emitters.py`). `parts` is the number of parallel tasks, `moved` the bytes
    read and written. `at_levels` says where these come from."""
    if emitter == "YNNPACK":
        return _library(kernel, moved, parts)
    if emitter in ("Eigen", "plain loops", "matrix-vector loop"):
        return _product(kernel, emitter, moved, caches)
    if emitter == "sort":
        return {name: amount / parts for name, amount in _sort(kernel).items()} | {"task": parts - 1}
    if emitter == "DUCC FFT":
        n = whole = max(kernel.element_count, kernel.operand.element_count)
        lengths = kernel.attributes.get("fft_length", ())
        longest = max(lengths, default=1)
        parts = max(1, min(parts, whole // longest))
        # DUCC convolves a length with a large prime factor: three transforms of twice the length.
        steps, convolved = sum(map(_steps, lengths)), sum(6 * math.log2(2 * k) for k in lengths)
        if kernel.raw("fft_type") == "RFFT" and steps < convolved:
            n = whole * 6 // 10  # measured with eight sizes (jaxlib 0.11.1)
        size = min(kernel.byte_size, kernel.operand.byte_size)
        name = "fft beyond l2" if 2 * size * longest > caches.l2 * whole else "fft"
        return {name: n * min(steps, convolved) / parts, "fft call": 1}
    if emitter in ("memcpy", "memcpy kernel"):
        source, shape = kernel.operand.shape, kernel.shape
        prefix = "" if source.minor_to_major == shape.minor_to_major else "transposed "
        return {f"{prefix}copy": moved}
    if emitter == "custom call":
        return _custom_call(kernel)
    if emitter in ("oneDNN", "collective", "random state kernel"):
        return None
    if emitter == "scatter emitter":
        parts, moved = 1, moved // 3  # the updates; what they change is counted by lines
    is_guarded = (
        emitter == "loop emitter" and parts > 1 and any(n % parts > 0 for n in _short_rows(kernel)[-1:])
    )
    is_column = emitter != "loop emitter" and _is_column(_first_array(without_bitcasts(end_of(kernel))))
    loops = _Loops(caches, emitter, is_serial=is_guarded or is_column)
    if not loops.follow(kernel):
        return None
    found = {name: amount / parts for name, amount in loops.counts().items()}
    if parts > 1:
        found["task"] = parts
        # Threads that share the units of a core are not twice as fast where these are busy.
        found["shared polynomial"] = sum(
            n * (2 if name.endswith("f64") else 1)
            for name, n in found.items()
            if name.partition(" ")[0] in _CHAINED
        )
    tiled = "tiled " if emitter == "tiled emitter" and loops.is_strided else ""
    found[f"{tiled}bytes"] = moved / parts
    return found


RESULT = "result byte"
"""Bytes of a result, which is new memory in each run, on top of what it takes to write them elsewhere."""
_MOVED = ("bytes", "copy")


def at_levels(work: Work, shares: Mapping[str, float]) -> Work:
    """The work with its bytes by the cache that holds them; `shares` are parts of them by level."""
    found = {}
    for name, amount in work.items():
        if name.endswith(_MOVED):
            for level, share in shares.items():
                found[RESULT if level == RESULT else f"{name} {level}"] = amount * share
        else:
            found[name] = amount
    return found


Reads = list[tuple[Instruction, object, int | None, float]]  # Operands, with place, dimension and how often


class _Loops:
    """The reads and operations of a kernel that XLA writes as loops."""

    def __init__(
        self,
        caches: Caches,
        emitter: str,
        *,
        is_serial: bool,
    ) -> None:
        self._caches = caches
        self._by_tiles = emitter == "tiled emitter"
        self._by_parts = emitter == "concatenate emitter"
        self._operations = defaultdict[tuple[str, str, bool], float](float)
        self._one_by_one = set[Instruction]()
        self._chosen = set[Instruction]()
        self._shifted = set[Instruction]()  # below a slice that begins within a row
        self._joined = set[Instruction]()  # read by rows that join several of theirs
        self._awaited = set[Instruction]()
        self._whole = set[Instruction]()  # the parts of concatenates among these are loops of their own
        self._other = defaultdict[str, float](float)
        self._choices = defaultdict[str, float](float)  # of parts and padding, known where a row is unrolled
        self._written = 0.0  # elements of the last result
        self._row = 0  # elements of the innermost loop, where another one is around it
        self._body = _LOOP  # instructions of its iterations
        self._instructions = 0.0  # of plain operations of all iterations
        self._iterations = 0.0
        self._has_loop = False
        self._is_apart = False
        self._is_padded = False  # on both ends of its rows
        self._pads: list[float] = []  # elements of each
        self._padding = 1.0  # elements that the tiled emitter computes for one
        self.is_strided = False
        self._is_serial = is_serial
        self._has_short_rows = False

    def counts(self) -> Work:
        """Amounts by rate, of operations without the parallel tasks."""
        has_branches = len(self._pads) > _MOST_PADS
        has_vectors = not (self._is_serial or has_branches) and (self._by_tiles or not self.is_strided)
        is_bare = not self._operations and any(name.startswith("pad") for name in self._choices)
        is_whole = self._row > _SHORTEST and self._row * self._body <= _WHOLE
        is_whole &= not (self._has_loop or self._by_tiles or is_bare)
        found = self._other | ({} if is_whole else self._choices)
        is_apart = self._is_apart or (is_bare and self._is_padded and self._row >= _UNROLLED)
        if (is_whole or (is_apart and not self._by_tiles)) and not self._is_serial:
            found["element one by one"] = self._written
        found["element one by one"] += sum(self._pads[0 if has_branches else _FEW_PADS :])
        if has_vectors:
            found["deep operation"] += max(self._instructions - _COVERED * self._iterations, 0)
        rest = self._rest() if has_vectors and not is_whole else 0.0
        for (opcode, kind, is_apart), whole in self._operations.items():
            named = opcode if opcode in _SLOW or opcode == "convert" else "operation"
            parts = ((is_apart, whole * (1 - rest)), (True, whole * rest))
            for is_scalar, count in parts if rest else parts[:1]:
                is_serial = is_scalar or self._is_serial
                scalar = "scalar " if is_scalar or not has_vectors else ""
                if opcode in _SLOW:
                    scalar = "serial " if is_serial else scalar
                if opcode in _CHAINED and not is_serial:
                    if is_whole:
                        found["polynomial one by one"] += count
                    count *= self._padding
                found[f"{scalar}{named} {kind}"] += count
        return dict(found)

    def _rest(self) -> float:
        """The part of a row without vectors; four left over take half of their time. A row of less than two
        vectors has none unless LLVM unrolls it or all is simple (measured with rows of 2 to 207, 0.11.1)."""
        row = self._row
        rest = row % 4 + row % _SHORTEST // 4 * 2
        if self._by_tiles or self._has_loop or not rest or (row - 1) * self._body <= _WHOLE:
            return 0.0
        return rest / row if row >= _ROW else any(opcode in _CHAINED for opcode, *_ in self._operations)

    def follow(self, kernel: Instruction) -> bool:
        """Count the work of a kernel; False if it is too much."""
        fusion = kernel.is_fusion
        outputs = end_of(kernel).outputs
        self._has_short_rows = bool(_short_rows(kernel))
        whole = self._whole = {without_bitcasts(o) for o in outputs}
        self._by_parts &= all(not o.is_concatenate for o in whole)
        pending: dict[Instruction, dict[object, tuple[int | None, float]]] = defaultdict(dict)
        for output in dict.fromkeys(outputs):
            shape = _first_array(output)
            if shape is None:
                return False
            order = shape.minor_to_major
            inner = next((d for d in order if shape.dimensions[d] > 1), order[0] if order else None)
            joined = without_bitcasts(output)
            stored = joined.second if joined.opcode == "dynamic-update-slice" else output
            written = self._written = float(first_leaf(stored.shape).element_count)
            pending[output]["result"] = (inner, written)
            row = shape.dimensions[inner] if inner is not None else 1
            self._row = row if written > row else 0
            if self._by_tiles:
                self._count_tiles(kernel, shape, row)
            if joined.is_concatenate and strides_of(joined.shape)[joined.dimension] == 1:
                is_narrow = joined.sizes[joined.dimension] < _SHORTEST
                self._other["joined narrow"] += written if is_narrow else 0.0
        inside = kernel.fused_computation.post_order() if fusion else [kernel]
        total = 0
        for x in reversed(inside):
            accesses = pending.pop(x, {})
            total += len(accesses)
            # Of several parts of one slice LLVM makes no vectors (jaxlib 0.11.1, by the code it writes).
            rows = [d for d, _ in accesses.values() if d is not None]
            self._is_serial |= x.opcode == "dynamic-slice" and len(rows) > 1
            is_by_parts = self._by_parts and self._row >= _UNROLLED  # each in a loop of its own
            if x in self._chosen or (x.is_concatenate and x not in whole and not is_by_parts):
                self._chosen.update(x.operands)
            for below in (self._shifted, self._joined):
                if x in below and not x.is_broadcast:
                    below.update(x.operands)
            self._shifted.update([x] if x.is_bitcast and len(accesses) > 1 else ())
            if x.is_parameter and len(accesses) > 1:
                self._other["read again"] += sum(n for _, n in accesses.values()) * (1 - 1 / len(accesses))
            if total > _MOST_ACCESSES:
                return False
            for index, (inner, count) in accesses.items():
                for operand, place, d, n in self._access(x, index, inner, count):
                    if fusion or operand is x:
                        other = pending[operand].get(place)
                        pending[operand][place] = (d, max(n, other[1] if other else 0.0))
                    else:
                        self._read(operand.shape, d, n)
        return True

    def _access(
        self,
        x: Instruction,
        index: object,
        inner: int | None,
        count: float,
    ) -> Reads:
        opcode, shape = x.opcode, x.shape
        if opcode == "parameter":
            self._read(shape, inner, count)
            return []
        operands = x.operands
        own = (id(x), index)
        is_scalar = x in self._one_by_one
        is_branch = is_scalar or (opcode == "reduce" and shape.is_tuple)
        if opcode == "pad" and inner is not None:  # LLVM asks once for a row with padding at one end
            low, high, between = _padding(x, inner)
            is_border = low > 0 < high
            self._chosen.update(operands if low > _PEELED or high > 1 else ())
            self._is_padded |= is_border
            self._pads.append(count)
            self._is_apart |= between and self._row >= _UNROLLED
            is_branch |= between
            self._chosen.update(operands if is_border or self._has_short_rows else ())
        if is_branch:
            self._one_by_one.update(operands)  # within a branch, or a loop with several results
        if opcode in ("constant", "iota", "rng", "partition-id", "replica-id"):
            if opcode == "iota":
                self._operations["iota", _kind(shape), is_scalar] += count
            return []
        first = operands[0] if operands else x
        if opcode == "copy":
            self._count_joined(x, inner, count)
        if opcode == "get-tuple-element" or (is_elementwise(x) and opcode != "fusion"):
            if opcode not in _FREE:
                kind = _kind(shape)
                if opcode == "convert":
                    kind = f"{_converted(first.shape)}>{_converted(shape)}"
                elif opcode in ("compare", "bitcast-convert", "abs"):
                    kind = _kind(first.shape)
                    opcode = "absolute" if opcode == "abs" and kind == "c64" else opcode  # a square root
                is_easy = opcode in ("divide", "remainder") and _divides_by_constant(x)
                named = "multiply" if is_easy else opcode
                is_awaited = x in self._awaited
                if opcode in _CHAINED or is_awaited:
                    self._awaited.update(operands)
                # A long polynomial that another one waits for takes twice as long, measured (jaxlib 0.11.1).
                own_count = count * 2 if is_awaited and opcode in _CHAINED else count
                own_count *= _UNPREDICTED if opcode in ("sine", "cosine") and _is_far(first) else 1
                is_plain = not self._by_tiles and not self._has_short_rows and named not in _SLOW
                if is_plain and opcode != "convert" and operands[-1].element_type in _BYTES:
                    own_count /= _BYTES_OF_A_VECTOR
                least = _VECTOR if named in _SLOW else 0.0
                # A part is computed where it is chosen, with vectors if the loop around it fills them.
                is_apart = x in self._chosen and 1 < self._row < _SHORTEST
                is_scalar |= is_apart or (x in self._chosen and named in _SLOW)
                if named not in _SLOW and opcode != "convert":
                    each = _instructions(x)
                    own_count *= each if is_apart else 1
                    self._instructions += 0.0 if is_scalar else each * count
                    self._iterations = max(self._iterations, count)
                self._operations[named, kind, is_scalar] += max(own_count, least)
                if inner is not None:
                    self._body += 3 if opcode in _EXTREME else 1
            if opcode == "select" and 0 < self._row < _SHORTEST:
                is_same = first.is_broadcast and inner not in first.dimensions
                below = reach(first.operands if is_same else (), lambda i: i.operands)
                if any(i.is_parameter and i.rank for i in below):  # of data, for a row
                    self._other["choice of a row"] += 0.4 * max(count / self._row - _PREDICTED, 0)
            same = {o for o in operands if opcode == "get-tuple-element" or o.rank == shape.rank}
            return [(o, index, inner if o in same else None, count) for o in dict.fromkeys(operands)]
        if opcode in ("bitcast", "reshape"):
            place = _same_place(shape, first.shape, inner)
            own_row = first.sizes[place] if place is not None else 0
            is_part = inner is not None and 0 < own_row < shape.dimensions[inner]
            if is_part and not self._by_tiles and not without_bitcasts(x).is_concatenate:
                self._joined.update(operands)
                self._shifted.update(operands if x in self._shifted or own_row % _INTERLEAVED else ())
            return [(first, own, place, count)]
        if opcode == "transpose":
            self._count_joined(x, inner, count)
            # Short rows that are neighbours no more do not fill a vector together.
            is_minor = inner is not None and x.dimensions[inner] == first.minor_to_major[0]
            self._is_apart |= is_minor and self._row <= _SHORTEST
            return [(first, own, None if inner is None else x.dimensions[inner], count)]
        is_cut = opcode == "slice" and strides_of(shape) != strides_of(first.shape)
        if (is_cut or opcode == "reverse") and x in self._joined:
            self._is_serial = True
            weight = 1.0 if without_bitcasts(first).user_count > 1 else _JOINED
            self._other["element of joined rows"] += count * weight
        elif x in self._joined and x in self._shifted and opcode == "broadcast" and x.dimensions:
            self._other["element of joined rows"] += count * _JOINED
        if opcode == "broadcast":
            if inner in x.dimensions:
                return [(first, own, x.dimensions.index(inner), count)]
            length = shape.dimensions[inner] if inner is not None else 1
            return [(first, own, None, count / max(length, 1))]
        if opcode in ("reduce", "reduce-window", "select-and-scatter"):
            return self._reduction(x, own, count)
        if opcode == "dynamic-update-slice":
            part, minor = operands[1].shape, (*shape.minor_to_major, None)[0]
            if minor is not None and part.dimensions[minor] < shape.dimensions[minor]:
                row = part.dimensions[minor]  # a line of the array for each, or for several that share one
                rows = min(part.element_count / max(row, 1), shape.buffer_size / _LINE)
                self._lines("scattered", shape, rows, row)
            return [(operands[1], own, inner, count)]
        if opcode in ("slice", "dynamic-slice"):
            is_within = opcode == "slice" and inner is not None and x.attributes["slice"][inner].start
            self._shifted.update(operands if is_within else ())
            return [(first, own, inner, count)]
        if opcode in ("pad", "concatenate", "reverse"):
            is_by_parts = x in self._whole or (self._by_parts and self._row > _SHORTEST)
            if opcode != "concatenate" or not is_by_parts:
                name, each = _chosen(x, inner)
                self._choices[f"{name} {_kind(shape)}"] += count * each
                if inner is None and _ROW * count <= self._written:
                    self._other["choice of a row"] += count * each
            whole = max(shape.element_count, 1)
            parts = operands if opcode == "concatenate" else operands[:1]
            return [(o, (own, k), inner, count * o.element_count / whole) for k, o in enumerate(parts)]
        if opcode == "gather":
            sizes, gathered = x.attributes.get("slice_sizes", ()), first.shape
            row = max(math.prod(sizes), 1)
            self._has_loop = True
            place = next((d for d in gathered.minor_to_major if sizes[d] > 1), None)
            self.is_strided |= row == 1
            self._is_serial |= row == 1 and self._has_short_rows  # LLVM unrolls them and makes no vectors
            run = 1 if place is None or strides_of(gathered)[place] > 1 else row
            near = min(run, _STREAMED)
            self._other["gathered row"] += count / row
            self._other["gathered element"] += count / run * near
            self._other["later gathered element"] += count / run * (run - near)
            self._lines("gathered", gathered, count / run, near)
            self._lines("later gathered", gathered, count / run, run - near)
            return [(first, own, place, count), (operands[1], own, None, count / row)]
        if opcode == "scatter":
            self._has_loop = True
            updates = operands[-1].element_count
            indices = operands[len(operands) // 2].shape
            each = len(x.attributes.get("scatter_dims_to_operand_dims", ())) or 1
            rows = max(indices.element_count // each, 1)
            run = _window_run(x)
            runs = lines = updates / run
            self._other["scattered row"] += runs
            self._other["element of joined rows"] += 2 * updates * _JOINED if runs > rows else 0
            is_sorted = x.raw("indices_are_sorted") == "true"
            placed = origin(operands[len(operands) // 2])
            level = ""  # of the lines that the next window shares
            if x.operand.rank and _follow_each_other(placed):
                row = x.operand.sizes[x.operand.minor_to_major[0]]
                apart = x.operand.byte_size * row // max(x.operand.element_count, 1)
                level = self._caches.level(runs / max(rows, 1) * _LINE, apart)
            if level in ("l1", "l2"):
                lines = min(runs, operands[-1].byte_size / _LINE)
            elif is_sorted or not placed.parent.parameters:
                lines = min(runs, x.operand.byte_size / _LINE)
                lines = lines if runs <= 2 * lines else 0  # the processor reads ahead
            if is_sorted:
                places = max(x.operand.element_count * rows / max(updates, 1), 1)
                self._other["scattered row at one place"] += rows * rows / (rows + _REPEATED * places)
            self._other["scattered element"] += updates
            self._lines("scattered", x.operand.shape, lines, run)
            if level != "l1" and x.operand.byte_size > self._caches.l1:  # the line of the row before
                self._other["scattered line l2"] += runs - lines
            return [(operands[-1], own, None, float(updates))]
        if opcode in ("dot", "convolution"):
            products = _products(x)
            self._has_loop = True
            summed = products / 2 / max(shape.element_count, 1)
            # Each sum waits for the one before, unless LLVM unrolls all and computes several results at once.
            is_chained = opcode == "dot" and summed * _DOT > _WHOLE
            name = "chained dot" if is_chained else "unrolled dot" if opcode == "dot" else "plain convolution"
            self._other[name] += products
            names = dimension_numbers(x)  # None for a dot
            along = [x.attributes.get(f"{side}_contracting_dims") or (None,) for side in ("lhs", "rhs")]
            along = [(names.lhs.index("f"),), (names.rhs.index("i"),)] if names else along
            # Reads do not wait longer than sums.
            return [
                (o, (own, d), None if is_chained else d[0], products / 2)
                for o, d in zip(operands, along, strict=False)
            ]
        if opcode != "tuple":
            self._other[f"other {opcode}"] += count
        return [(o, (own, k), inner, count) for k, o in enumerate(operands)]

    def _reduction(
        self,
        x: Instruction,
        own: object,
        count: float,
    ) -> Reads:
        arrays = x.operands[: x.operand_count // 2] if x.opcode != "select-and-scatter" else x.operands[:2]
        shape = arrays[0].shape
        result = first_leaf(x.shape)
        steps = 1
        self._has_loop = True
        if x.is_reduce:
            each = shape.element_count / max(result.element_count, 1)
            inner = max((d for d in x.dimensions if shape.dimensions[d] > 1), default=None)
            applied = x.to_apply
            operation = next((i.opcode for i in applied if i.opcode not in ("parameter", "convert")), "add")
            if applied.root.opcode == "convert":
                operation = "rounded"
            # LLVM adds rows to a row of results where it unrolls their loop (measured, 4 to 131,072 rows).
            is_short = each * (steps + 4) < _WHOLE_SUM
            if is_short and shape.rank and not x.is_tuple and shape.minor_to_major[0] not in x.dimensions:
                operation += " columns"
                inner = shape.minor_to_major[0]
        else:
            window = window_dimensions(x)
            minor = next((d for d in shape.minor_to_major if shape.dimensions[d] > 1), 0)
            inner, operation = None, "window"
            if sum(d.size > 1 for d in window) > 1:
                operation = "window of several dimensions"
            elif minor < len(window) and window[minor].size > 1:
                operation = "window along rows"
            if x.to_apply.root.opcode == "convert":
                operation = "window rounded"
            each = window_size(x)
            if each > _LARGE_WINDOW:
                operation = f"long {operation}"
            is_padded = any(d.padding_low or d.padding_high for d in window)
            is_whole = each * _LOOP <= _WHOLE and not is_padded and all(d.stride == 1 for d in window)
            if operation == "window along rows" and is_whole:
                operation = "unrolled window"
            elif is_padded:
                operation = f"padded {operation}"  # asks for each element whether it is inside
            if x.to_apply.root.opcode in _EXTREME and operation != "unrolled window":
                operation = f"extreme {operation}"
        if len(arrays) > 1:
            steps = sum(i.opcode not in _FREE for i in x.to_apply)
            is_whole = x.is_reduce and each * (steps + 4) < _WHOLE_SUM
            operation = "several unrolled" if is_whole else "several"
        self._other[f"reduce {operation} {_kind(shape)}"] += count * each * steps
        if len(arrays) == 1:  # each step waits for the one before
            self._other["reduced polynomial"] += count * each * sum(i.opcode in _CHAINED for i in x.to_apply)
        return [(a, own, inner, count * each) for a in arrays]

    def _count_joined(self, x: Instruction, inner: int | None, count: float) -> None:
        """The elements of a transpose or copy whose result is read by rows that join several of its own: LLVM
        divides to find the place of each, unless these dimensions are neighbours in the operand too."""
        shape, operand = x.shape, x.operand.shape
        moved = x.dimensions if x.is_transpose else range(shape.rank)
        given = [d for d in operand.minor_to_major if operand.dimensions[d] > 1]
        rows = [d for d in shape.minor_to_major if shape.dimensions[d] > 1]
        if inner is None or not rows or self._by_tiles:
            return
        neighbours = 1
        for d, source in zip(rows, given[given.index(moved[rows[0]]) :], strict=False):
            if moved[d] != source:
                break
            neighbours *= shape.dimensions[d]
        if self._row > max(shape.dimensions[rows[0]], neighbours):
            self._other["element of joined rows"] += count

    def _count_tiles(self, kernel: Instruction, shape: Shape, row: int) -> None:
        """The tiles of a row are lines, or the power of two that holds the row. Where lines do not divide it,
        each tile is copied by its bounds, and the last one by elements."""
        lanes = max(_LINE * shape.element_count // max(shape.buffer_size, 1), 1)
        if row <= lanes:
            self._padding = 2 ** math.ceil(math.log2(max(row, 1))) / max(row, 1)
        elif row % lanes:
            self._padding = _CHECKED
            arrays = 1 + sum(o.element_count == shape.element_count for o in kernel.operands)
            rows = arrays * self._written / row
            self._other["partial tile"] += rows
            self._other["checked tile"] += rows * math.ceil(row / lanes)

    def _lines(
        self,
        name: str,
        shape: Shape,
        rows: float,
        row: float,
    ) -> None:
        """Rows of so many elements are read or written anywhere in an array."""
        level = self._caches.level(shape.buffer_size)
        lines = max(row * shape.buffer_size / max(shape.element_count, 1) / _LINE, min(row, 1.0))
        if level != "l1":
            self._other[f"{name} line {level}"] += rows * lines

    def _read(self, shape: Shape, inner: int | None, count: float) -> None:
        """An input's elements are read `count` times, those of an inner loop along dimension `inner`."""
        if inner is None or inner >= shape.rank or shape.dimensions[inner] <= 1:
            return
        self._body += 1
        stride = strides_of(shape)[inner]
        apart = stride * shape.buffer_size // max(shape.element_count, 1)
        if stride > _INTERLEAVED:
            self.is_strided |= self._by_tiles
            self._is_apart |= self._row > _SHORTEST and not self._has_loop
        if stride == 1 or apart < _LINE:
            return
        self.is_strided = True
        size = min(shape.dimensions[inner] * _LINE, shape.buffer_size)
        if self._by_tiles:
            return
        level = self._caches.level(size, apart if size > _SET_LINES * _LINE else _LINE)
        self._other[f"strided read {level}"] += count


def _instructions(x: Instruction) -> int:
    """Instructions of a plain operation on vectors of 32-bit elements. The extreme of two values looks for
    NaN in both, and their registers are needed longer (measured, jaxlib 0.11.1)."""
    each = 2 if _kind(x.shape) in ("f64", "s64") else 1
    if x.opcode not in _CHECKED_FOR_NAN or x.element_type not in FLOATING_TYPES:
        return each
    has_constant = any(o.through("broadcast").is_constant for o in x.operands)
    return each * (4 if x.opcode in _EXTREME and has_constant else 8)


def _short_rows(kernel: Instruction) -> list[int]:
    """The sizes of a result, from the minor one on, whose rows are so short that LLVM unrolls them first: it
    makes no vectors then of what is not simple (measured with lengths from 2 to 100). Else none."""
    shape = _first_array(kernel)
    sizes = [shape.dimensions[d] for d in shape.minor_to_major if shape.dimensions[d] > 1] if shape else []
    return sizes if len(sizes) > 1 and sizes[0] < _UNROLLED else []


def _is_column(shape: Shape | None) -> bool:
    """True for [512,1]: LLVM makes no vectors across a loop of one iteration (measured, jaxlib 0.11.1)."""
    return shape is not None and shape.element_count > 1 == shape.dimensions[shape.minor_to_major[0]]


def _is_far(angle: Instruction) -> bool:
    """True for the product of values with a large constant."""
    factors = [o.past("broadcast") for o in angle.operands] if angle.opcode == "multiply" else []
    return any(abs(f.literal.scalar or 0) >= _FAR for f in factors if f.is_constant)


def _divides_by_constant(x: Instruction) -> bool:
    """True where LLVM multiplies instead: integers, and remainders of powers of two from 1 on."""
    source = x.second.past("broadcast")
    if not source.is_constant:
        return False
    value = float(source.literal.scalar or 0)
    is_power = x.opcode == "remainder" and value >= 1 and math.frexp(value)[0] == 0.5
    return is_power or _kind(x.shape) in ("s32", "s64")


def _chosen(x: Instruction, inner: int | None) -> tuple[str, int]:
    """The name of a choice that is made for each element, of an operand or of padding, and how often."""
    if x.opcode != "pad":
        along = " along rows" if x.is_concatenate and inner == x.dimension else ""
        return x.opcode + along, 1
    dimensions = range(x.rank) if inner is None else (inner,)  # LLVM asks for the others once for each row
    return "pad", sum(any(_padding(x, d)) for d in dimensions)


def _padding(x: Instruction, dimension: int) -> tuple[int, int, bool]:
    """Elements that a `pad` adds before and after a dimension; True if it adds some between its elements."""
    low, high, *between = map(int, str(x.raw("padding")).split("x")[dimension].split("_"))
    return low, high, any(between)


def _follow_each_other(places: Instruction) -> bool:
    """True for `start + jnp.arange(n)`: places that are counted from one number."""
    below = [*reach([places], lambda i: i.operands)]
    leaves = {i.opcode if i.rank or not i.is_array else "" for i in below if not i.operands}
    is_scaled = any(i.rank and i.opcode in ("multiply", "remainder") for i in below)
    return leaves == {"iota", ""} and not is_scaled


def _window_run(scatter: Instruction) -> int:
    """Elements of a scatter's window that follow each other in the updated array."""
    get, updated = scatter.attributes.get, scatter.operand
    given = [scatter.operands[-1].sizes[d] for d in get("update_window_dims", ())]
    for d in sorted({*get("inserted_window_dims", ()), *get("input_batching_dims", ())}):
        given.insert(d, 1)
    run = 1
    for d in updated.minor_to_major:
        run *= given[d]
        if given[d] < updated.sizes[d]:
            break
    return max(run, 1)


def _first_array(value: Instruction) -> Shape | None:
    return next((leaf for leaf in value.shape.leaf_shapes if leaf.is_array), None)


def _kind(shape: Shape) -> str:
    if not shape.is_array:
        return "f32"
    element = shape.element_type
    return _KINDS.get(element, element)


def _converted(shape: Shape) -> str:
    return "s8" if shape.is_array and shape.element_type in _BYTES else _kind(shape)


def _same_place(result: Shape, operand: Shape, inner: int | None) -> int | None:
    """The dimension of a bitcast's operand whose neighbours are as far apart; the minor one if none is."""
    if inner is None or not operand.is_array or not operand.minor_to_major:
        return None
    wanted, size = strides_of(result)[inner], 1
    for d in operand.minor_to_major:
        length = operand.dimensions[d]
        if length > 1 and wanted < size * min(length, _NEAR):
            return d
        size *= length
    return operand.minor_to_major[0]


# Libraries.
def _steps(length: int) -> float:
    """Steps of a transform by the prime factors of its length: one for a factor of two."""
    factor = next((k for k in range(2, math.isqrt(length) + 1) if length % k == 0), length)
    return factor / 2 + _steps(length // factor) if length > 1 else 0.0


def _library(fusion: Instruction, moved: int, threads: float) -> Work | None:
    """A fusion for YNNPACK: its product or reduction, and what is around it, once where that is repeated."""
    found = defaultdict(float, {"ynn call": 1.0, "ynn bytes": float(moved)})
    operations = sum(is_elementwise(x) for x in computed_in(fusion))
    longest = summed = stepped = 0.0  # rows of what is computed, of what is reduced, and of later steps
    by_rows = True
    sums = [x for x in computed_in(fusion) if x.is_reduce and x.to_apply.root.opcode == "add"]
    products = {x.operand for x in sums if x.operand.opcode == "multiply"}
    squares = {p for p in products if p.operand is p.second}  # which it sums at once
    products = {p for p in products if _is_outer(p)}
    for x in computed_in(fusion):
        kind = _kind(x.shape)
        if x.opcode in ("dot", "convolution"):
            is_dot = x.is_dot
            add_work(found, _rated(x, f"ynn {x.opcode}"), _longer(x, threads) if is_dot else 1.0)
            *batch, rows, _ = (1, 1, *x.sizes) if is_dot else (1, 1)
            share = rows / 96 if rows < _SMALL_PRODUCT else 1.0  # as measured (jaxlib 0.11.1)
            found["ynn batch"] += (math.prod(batch) - 1) * share
            if is_dot:
                found[f"ynn dot {_uneven(x)}row"] += math.prod(batch) * rows
        elif x in products:
            found[f"ynn dot {kind}"] += 2.0 * x.element_count
        elif x.is_reduce and x.operand not in products:
            source = x.operand.shape
            if _computes_again(x, fusion):
                found["other repeated reduce"] = 1.0  # without a rate: nobody knows how often
            along = source.minor_to_major[0] in x.dimensions if source.minor_to_major else True
            direction = "rows" if along else "columns"
            by_rows &= along
            terms = without_bitcasts(x.operand.operand if x.operand in squares else x.operand)
            if not along and is_elementwise(terms) and x is not without_bitcasts(end_of(fusion)):
                found[f"ynn operation {kind}"] += 2 * source.element_count  # YNNPACK stores what it sums
            found[f"ynn reduce {direction} {_kind(source)}"] += source.element_count
            reduced = source.element_count / _run(source, x.dimensions)
            is_extreme = along and x.to_apply.root.opcode in _EXTREME
            found["ynn reduced row"] += reduced * (_EXTREME_ROW if is_extreme else 1)
            summed = max(summed, reduced)
            if along and x.is_array:
                found["ynn operation of a row"] += x.element_count * operations
        elif x.opcode == "reduce-window":
            found[f"ynn window {kind}"] += x.element_count * window_size(x)
        elif x.opcode not in _FREE and x not in squares and x.element_count > 1:
            slow = x.opcode if x.opcode in _SLOW else "operation"
            found[f"ynn {slow} {kind}"] += x.element_count
            row = _run(x.shape, x.minor_to_major[:1])
            is_repeated = any(o.is_broadcast for o in x.operands)
            if x.rank < 3 or is_repeated:  # else all rows are one
                longest = max(longest, x.element_count / row)
            # It goes by rows through what it has computed, and adds to a product at once.
            at_once = _FREE | {"multiply"} if x.opcode == "add" else _FREE
            if is_repeated and row % _ROW and any(o.opcode not in at_once for o in x.operands):
                stepped += x.element_count / row
    found["ynn row"] = max(longest - summed, 0.0) + (_REPEATED_STEP * stepped if by_rows else 0.0)
    for x in computed_in(fusion):
        if x.is_reduce and (buffered := _buffered_bytes(x, fusion, squares)):
            parts = math.ceil(_run(x.operand.shape, x.dimensions) / _REDUCED_PART)
            found["bytes fresh" if buffered >= FRESH else "bytes l3"] += buffered * parts / threads
    return dict(found)


def _is_outer(product: Instruction) -> bool:
    """True where YNNPACK sums a product as a matrix product. Where an operand is repeated along the minor
    dimension and another one it takes 4 to 20 times as long (jaxlib 0.11.1)."""
    minor = product.minor_to_major[:1]
    return all(
        o.is_broadcast and (set(minor) <= {*o.dimensions} or len(o.dimensions) == product.rank - 1)
        for o in product.operands
    )


def _buffered_bytes(reduce: Instruction, fusion: Instruction, summed: Container[Instruction]) -> int:
    """The bytes that YNNPACK keeps of the same part of all rows: it goes through rows longer than a part by
    parts, and keeps what it computes in two steps or more from what is repeated along them (16 measured)."""
    shape = reduce.operand.shape
    row = shape.minor_to_major[0] if shape.minor_to_major else None
    length = _run(shape, reduce.dimensions)
    if row not in reduce.dimensions or length <= _REDUCED_PART:
        return 0
    inside = [x for x in computed_in(fusion) if x.sizes == shape.dimensions]
    is_repeated = any(x.is_broadcast and x.dimensions and row not in x.dimensions for x in inside)
    steps = (x for x in inside if is_elementwise(x) and x.opcode != "negate" and x not in summed)
    count = sum(all(not o.is_broadcast for o in x.operands) for x in steps)
    return 4 * _REDUCED_PART * shape.element_count // length if is_repeated and count > 1 else 0


_TASK = 64  # rows and columns of a small task
_TASK_SIZE = 65_536  # results of a large one, or numbers that it reads
_PACKED = 32_768  # numbers of an operand that YNNPACK packs together


def _longer(dot: Instruction, threads: float) -> float:
    """The time of a product for that of one whose threads are all busy. YNNPACK makes no small tasks: many
    products are one (`choose_split_factors` in its `subgraph/dot.cc`)."""
    *batch, m, n = (max(d, 1) for d in (1, 1, *dot.sizes))
    summed = dot_flops(dot) // (2 * max(dot.element_count, 1)) or 1
    rows, columns = min(m, _TASK), min(n, _TASK * max(1, _PACKED // (_TASK * summed)))
    while max(rows * columns, (rows + columns) * summed) < _TASK_SIZE:
        if columns < n and (4 * columns <= rows or rows >= m):
            columns *= 2
        elif rows < m:
            rows *= 2
        else:
            break
    return max(1.0, threads * min(rows / m, 1) * min(columns / n, 1) / math.prod(batch))


def _run(shape: Shape, dimensions: Ints) -> int:
    """Elements in memory until a dimension follows that is among these where the others are not."""
    run = 1
    for d in shape.minor_to_major:
        if (d in dimensions) != (shape.minor_to_major[0] in dimensions):
            break
        run *= shape.dimensions[d]
    return max(run, 1)


def _uneven(dot: Instruction) -> str:
    """`uneven ` for few columns that are sums of a number that no vector divides: slower for each row."""
    summed = math.prod(dot.operand.sizes[d] for d in dot.attributes["lhs_contracting_dims"])
    return "uneven " if summed % 4 and summed > 2 and dot.sizes[-1] < _SMALL_PRODUCT else ""


def _computes_again(reduce: Instruction, fusion: Instruction) -> bool:
    """True where YNNPACK evaluates what is reduced for each of its tiles: 4 to 700 times, measured. It sums
    along columns what a broadcast repeats along another dimension that is kept."""
    shape, reduced = reduce.operand.shape, set(reduce.dimensions)
    if len(reduced) > 1 or not shape.minor_to_major or shape.minor_to_major[0] in reduced:
        return False
    needed = reduced | {shape.minor_to_major[0]}
    return any(
        x.is_broadcast
        and x.sizes == shape.dimensions
        and reduced <= set(x.dimensions)
        and not needed.union(x.dimensions) >= set(range(shape.rank))
        for x in computed_in(fusion)
    )


_FACTORIZATIONS = {
    "potrf": 1 / 3,
    "getrf": 2 / 3,
    "geqrf": 4 / 3,
    "orgqr": 4 / 3,
    "ungqr": 4 / 3,
    "syevd": 4 / 3,
    "heevd": 4 / 3,
    "gesdd": 5.0,
    "trsm": 1.0,
}
"""FLOP by LAPACK's routine, for m × n × min(m, n)."""
_TALL = 11 / 6  # the ratio of sides from which LAPACK's `gesdd` decomposes a triangle


def _custom_call(kernel: Instruction) -> Work | None:
    """A factorization in LAPACK, or the k largest numbers of rows; None for other calls."""
    target, shape = custom_call_target(kernel), _first_array(kernel)
    given = kernel.operand.shape if kernel.operands else None
    if given is None or shape is None or not shape.rank:
        return None
    if target == "TopK":
        length, k = given.dimensions[-1], shape.dimensions[-1]
        inserted = k * (1 + math.log(max(length / k, 1))) * math.log2(max(k, 2))
        rows = given.element_count / length
        return {"top-k element": given.element_count, "top-k insertion": rows * inserted}
    routine = target.removeprefix("lapack_")[1:].removesuffix("_ffi")
    if routine == "gtsv":  # 9 ns for each row of each column, and for each row, on the EPYC (jaxlib 0.11.1)
        *batch, rows, columns = kernel.operands[-1].sizes
        calls = math.prod(batch)
        return {"lapack call": calls, f"getrf {_kind(shape)}": 2.7 * calls * rows * (columns + 1)}
    if routine not in _FACTORIZATIONS or shape.rank < 2:
        return None
    *batch, m, n = shape.dimensions
    kind, calls, side = _kind(shape), math.prod(batch), min(m, n)
    found: Work = {"lapack call": calls, f"{routine} {kind}": calls * m * n}
    if routine == "gesdd" and max(m, n) > _TALL * side:  # of the square triangle of a QR
        found = {"lapack call": calls, f"gesdd {kind}": calls * side * side}
        found |= {f"geqrf {kind}": calls * m * n, f"orgqr {kind}": calls * m * n}
    config = str(kernel.raw("backend_config"))
    if routine == "gesdd" and m != n and "mode = 65" in config:  # all of the vectors of the longer side
        found[f"orgqr {kind}"] = found.get(f"orgqr {kind}", 0) + calls * max(m, n) ** 2
    if routine == "gesdd" and "mode = 78" in config:  # no vectors: a quarter of the time, measured
        found = {name: amount / 4 for name, amount in found.items()}
    if routine == "trsm":
        side = given.dimensions[-1]
        found[f"trsm matrix {kind}"] = calls * side * side
    found[f"lapack flop {kind}"] = calls * _FACTORIZATIONS[routine] * m * n * side
    return found


def _product(
    kernel: Instruction,
    emitter: str,
    moved: int,
    caches: Caches,
) -> Work:
    found = defaultdict(float, {f"{emitter} bytes": float(moved)})
    for x in inside(kernel):
        if x.opcode in ("dot", "convolution"):
            is_near = emitter == "plain loops" and caches.level(x.second.shape.buffer_size) == "l1"
            add_work(found, _rated(x, f"{emitter} {x.opcode}{' near' if is_near else ''}"))
            batch = math.prod(x.sizes[:-2]) if x.is_dot else 1
            summed = x.attributes.get("lhs_contracting_dims", ())
            found[f"{emitter} call"] += 1 if emitter == "matrix-vector loop" else batch
            if emitter == "Eigen" and x.is_dot:
                found["Eigen kernel"] = 1.0
            if emitter == "matrix-vector loop":
                found[f"{emitter} batch"] += batch - 1
                found[f"{emitter} row"] += x.element_count
            elif x.is_dot and x.operand.minor_to_major[0] not in summed:
                found[f"{emitter} element of columns"] += x.operand.element_count
    return dict(found)


def _products(x: Instruction) -> float:
    return float(dot_flops(x) if x.is_dot else convolution_flops(x))


_LARGE_WINDOW = 100  # places of a window, of which Eigen gathers each by itself then
_FEWEST_FLOPS = 3_000  # of a window in a group, which YNNPACK does not gather for less (15 sizes measured)
_FEWEST_FILTERS = 8  # a product computes so many columns together, whether there are as many filters or not


def _convolution(x: Instruction, name: str) -> Work:
    """FLOP, and the rows of windows from which a library gathers its matrix."""
    sizes = [d.size for d in window_dimensions(x)]
    numbers, groups = dimension_numbers(x), int(x.raw("feature_group_count") or 1)
    flops, kind = _products(x), _kind(x.shape)
    if numbers is None or not sizes:
        return {f"{name} {kind}": flops}
    filters = max(x.sizes[numbers.output.index("f")] // groups, 1)
    windows = x.element_count / filters
    is_ynn = name.startswith("ynn")
    found = {}
    if any(d.base_dilation > 1 for d in window_dimensions(x)):
        name += " between zeros"
    elif groups > 1 and (filters < _FEWEST_FILTERS or (is_ynn and flops < _FEWEST_FLOPS * windows)):
        name += " of groups"
        found[f"{name} window"] = windows
    elif len(sizes) > 2:
        name += " of three dimensions"
    elif groups > 1:
        name += " of wide groups"
        found[f"{name} window"] = windows
    elif filters < _FEWEST_FILTERS:
        flops *= _FEWEST_FILTERS / filters
    rows = windows * math.prod(sizes[:-1])
    if window_size(x) > _LARGE_WINDOW:
        found[f"{name} place"] = rows * min(sizes[-1] - 1, _STREAMED + sizes[-1] / _NEAR)
    return found | {f"{name} {kind}": flops, f"{name} row": rows}


def _rated(x: Instruction, name: str) -> Work:
    """FLOP of a product, by operand type and by whether one of its sides is short."""
    kind = _kind(x.operand.shape) if name != "ynn dot" else _converted(x.operand.shape)
    if x.opcode == "convolution":
        return _convolution(x, name)
    flops = _products(x)
    n = max(x.element_count, 1)
    summed = flops / 2 / n
    size = x.sizes[-2:] if x.rank else ()
    short = min([summed, *size, *([1] if len(size) < 2 else [])]) < _SMALL_PRODUCT
    return {f"{name} {kind}{' short' if short else ''}": flops}


_SORTED_TOGETHER = 32_768  # elements that a thread sorts at a time (`sort_thunk.cc`)


def sort_tasks(kernel: Instruction, threads: int) -> float:
    """The factor by which threads that sort rows at once are faster than one (`SortThunk::Execute`)."""
    length = _sorted_length(kernel)
    rows = kernel.operand.element_count // length
    grain = max(1, _SORTED_TOGETHER // length)
    own = grain * math.ceil(math.ceil(rows / grain) / threads)
    return rows / min(rows, own) if rows else 1


def _sorted_length(kernel: Instruction) -> int:
    sizes = kernel.operand.sizes
    return max(sizes[kernel.dimension], 1) if sizes and kernel.dimensions else 1


def _sort(kernel: Instruction) -> Work:
    """Comparisons of all rows, and the bytes that each moves."""
    shape, length = kernel.operand.shape, _sorted_length(kernel)
    compared = shape.element_count * math.log2(max(length, 2))
    several = "one" if kernel.operand_count == 1 else "more"
    # XLA compares by code of its own for one comparison, else by a function for each pair.
    own = len([i for i in kernel.to_apply if not i.is_parameter]) == 1
    order = "" if own else " by a function"
    found = {f"sort {several} {_kind(shape)}{order}": compared}
    found["sorted row"] = shape.element_count / length
    found["sorted operand"] = compared * (kernel.operand_count - 1)
    return found
