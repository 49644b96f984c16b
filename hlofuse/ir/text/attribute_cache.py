"""Opcode forms and attribute texts of the fast path, each checked once for an opcode and shared. An opcode or
attribute that is missing here is left to the grammar. All is a subset of the grammar, with its meaning."""

from collections.abc import Callable

from hlofuse.ir.attributes.attributes import UNREAD, Attributes
from hlofuse.ir.graph import Computation
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES, OPCODES, values
from hlofuse.ir.record import Record
from hlofuse.ir.shape import Shape
from .checks import CHECKS, ONE_DIMENSION, Check, Written
from .patterns import (
    CALLED_NAME,
    COMMON_ATTRIBUTES,
    OWN,
    SHARDING,
    FastPathMiss,
    ShapeCache,
    common_form,
    split_tuple,
)
from .signatures import VARIADIC, signature

AT_LEAST_ONE = -2

# How the loop over instructions treats an opcode.
PLAIN, PARAMETER, CONSTANT, CALLING, OTHER = range(5)
_KINDS = {
    "parameter": PARAMETER,
    "constant": CONSTANT,
    **dict.fromkeys(
        "fusion call while map reduce reduce-window select-and-scatter sort scatter all-reduce"
        " all-reduce-start reduce-scatter custom-call conditional".split(),
        CALLING,
    ),
}
_MAY_LACK_OPERANDS = values("after-all tuple fusion call map custom-call")
# What makes other instructions on the way, or is checked for more than operand counts and attributes.
_GRAMMAR_ONLY = frozenset(
    "async-start async-update async-done scan domain ragged-dot scaled-dot"
    " topk infeed outfeed send send-done recv recv-done dynamic-reshape collective-permute-start".split()
)


class Form(Record):
    """The fast path's rule for an opcode: kind, operand count (or one of the two above), attributes. `check`
    compares operands and result as XLA does (`HloParserImpl::CreateInstruction`)."""

    opcode: str
    kind: int
    operands: int
    required: frozenset[str]
    allowed: frozenset[str]
    check: Check | None
    one_dimension: bool

    @property
    def attributes_key(self) -> tuple[object, ...]:
        """A key equal for forms that read the same attributes in the same way."""
        return self.kind == CALLING, self.required, self.allowed, self.one_dimension


def form(opcode: str) -> Form | None:
    takes = signature(opcode) if opcode in OPCODES and opcode not in _GRAMMAR_ONLY else None
    if takes is None:
        return None
    operands = 2 if opcode == "dot" else takes.operands
    if operands == VARIADIC and opcode not in _MAY_LACK_OPERANDS:
        operands = AT_LEAST_ONE
    check = _CHECKS.get(opcode)
    kind = _KINDS.get(opcode, OTHER if check else PLAIN)
    required, allowed = takes.required, takes.allowed
    if opcode == "broadcast":
        required = required | {"dimensions"}
    if opcode == "conditional":
        required = required | {"branch_computations"}
        allowed = allowed - {"true_computation", "false_computation"}
    if opcode == "collective-permute":
        allowed = allowed - {"slice_sizes"}
    return Form(opcode, kind, operands, required, allowed, check, opcode in ONE_DIMENSION)


def _chooses_by_number(x: Written) -> str | None:
    index = x.operands[0].shape
    return None if index.element_type == "s32" and not index.dimensions else "chooses by another value"


_BY_OPERANDS = "tuple reshape reduce reduce-window scatter dynamic-slice dynamic-update-slice"
"""Opcodes whose checks ask for operands and result alone."""
_CHECKS = {opcode: CHECKS[opcode] for opcode in _BY_OPERANDS.split()} | {"conditional": _chooses_by_number}
Called = tuple[tuple[str, Computation], ...]
_NEW = Attributes.__new__
_CALL_ORDER = {name: place for place, name in enumerate(CALLED_COMPUTATION_ATTRIBUTES)}


class AttributeCache(dict[str, Attributes]):
    """Text to attributes, for opcodes that take the same ones. A new text is checked as by the grammar;
    `FastPathMiss` where there is no pattern for it. `called` has the computations that a text names."""

    def __init__(
        self,
        form: Form,
        computations: dict[str, Computation],
        shapes: ShapeCache,
        check_common: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.called = dict[str, Called]()
        self.constraints = dict[str, list[Shape]]()
        self._form = form
        self._calls = form.kind == CALLING
        self._computations = computations
        self._shapes = shapes
        self._check_common = check_common
        self._checked = set[str]()
        self._checked_calls = dict[str, str]()
        """Texts before the called computation, where that is last: `, kind=kLoop, calls`."""

    def __missing__(self, text: str) -> Attributes:
        match = COMMON_ATTRIBUTES.fullmatch(text)
        own = match[1] if match is not None else self._own_before_others(text)
        # Most texts differ only in their metadata or the computation called: the rest has been seen before.
        if self._calls:
            start, _, name = own.rpartition("=")
            key = self._checked_calls.get(start)
            callee = self._computations.get(name.removeprefix("%"))
            if key is not None and callee is not None:
                self.called[text] = ((key, callee),)
            else:
                self.called[text] = self._check(own, text)
        elif own not in self._checked:
            self._check(own, text)
            self._checked.add(own)
        # As Attributes(text), which would take three times as long.
        attributes = self[text] = _NEW(Attributes)
        attributes._text = text
        attributes._raw = attributes._typed = None
        attributes.op_name = UNREAD
        return attributes

    def _own_before_others(self, text: str) -> str:
        """The opcode's own attributes in a text whose others only the grammar reads."""
        match = COMMON_ATTRIBUTES.match(text)
        assert match is not None  # it matches the empty text too
        others = text[match.end(1) :]
        # A sharding is often the only uncommon part, and the same before ever other metadata.
        sharding = SHARDING.match(others)
        if sharding is not None and not others.startswith(", sharding=", sharding.end()):
            rest = COMMON_ATTRIBUTES.fullmatch(others, sharding.end())
            if rest is not None and not rest[1]:
                others = sharding[0]
        self._check_common(others)
        return match[1]

    def _check(self, own: str, text: str) -> Called:
        """Names and values of the opcode's own attributes; the computations they name."""
        pairs = OWN.findall(own)
        values = dict(pairs)
        form = self._form
        if len(values) != len(pairs) or not form.required <= values.keys() <= form.allowed:
            raise FastPathMiss
        for name, value in pairs:
            pattern = common_form(name)
            if pattern is None or pattern.fullmatch(value) is None:
                raise FastPathMiss
            consistent = _CONSISTENT.get(name)
            if consistent is not None and not consistent(value):
                raise FastPathMiss
        if form.one_dimension and ("," in values.get("dimensions", "") or values.get("dimensions") == "{}"):
            raise FastPathMiss
        if values.get("use_global_device_ids") == "true" and "channel_id" not in values:
            raise FastPathMiss
        constraints = values.get("operand_layout_constraints")
        if constraints is not None:
            parts = split_tuple(f"({constraints[1:-1]})")
            if parts is None:
                raise FastPathMiss
            self.constraints[text] = [self._shapes[p] for p in parts]
        if not self._calls:
            return ()
        called = self._find_called(pairs)
        if (
            constraints is None
            and len(called) == 1
            and pairs[-1][0] == called[0][0]
            and pairs[-1][1][0] != "{"
        ):
            self._checked_calls[own.rpartition("=")[0]] = called[0][0]
        return called

    def _find_called(self, pairs: list[tuple[str, str]]) -> Called:
        """The computations named, in XLA's order; all of them stand earlier in the text."""
        out = []
        for key, value in pairs:
            if key in _CALL_ORDER:
                for name in CALLED_NAME.findall(value):
                    callee = self._computations.get(name)
                    if callee is None:
                        raise FastPathMiss
                    out.append((key, callee))
        if len(out) > 1:
            out.sort(key=lambda c: _CALL_ORDER[c[0]])
        return tuple(out)


def _window_is_consistent(text: str) -> bool:
    return len({field.count("x", field.index("=")) for field in text[1:-1].split()}) == 1


def _labels_are_consistent(text: str) -> bool:
    """True if each part has its two letters and every dimension once."""
    inputs, _, rest = text.partition("_")
    kernel, _, output = rest.partition("->")
    count = len(inputs) - 2
    digits = [str(n) for n in range(count)]
    return count <= 10 and all(
        sorted(part) == sorted([*digits, *letters])
        for part, letters in ((inputs, "bf"), (kernel, "io"), (output, "bf"))
    )


_CONSISTENT: dict[str, Callable[[str], bool]] = {
    "window": _window_is_consistent,
    "dim_labels": _labels_are_consistent,
}
