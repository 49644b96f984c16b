"""Attribute texts of instructions, checked once for each opcode and shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlofuse.ir.attributes import Attributes
from hlofuse.ir.computation import Computation
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES
from hlofuse.ir.parse.declined import Declined
from hlofuse.ir.parse.ordinary import CALLING, ONE_DIMENSION, Form
from hlofuse.ir.parse.patterns import CALLED_NAME, OWN, TAIL
from hlofuse.ir.parse.shapes import split_tuple
from hlofuse.ir.shape import Shape

if TYPE_CHECKING:
    from hlofuse.ir.parse.bodies import Memo

Called = tuple[tuple[str, Computation], ...]

_CALL_ORDER = {name: place for place, name in enumerate(CALLED_COMPUTATION_ATTRIBUTES)}


class TailMemo(dict[str, Attributes]):
    """Text to attributes for one opcode; raises `Declined` for what is out of the ordinary.

    Equal texts of any opcode are one object. `called` has, for opcodes that call computations, those
    that a text names.
    """

    def __init__(self, form: Form, memo: Memo) -> None:
        super().__init__()
        self.called: dict[str, Called] = {}
        self.constraints: dict[str, list[Shape]] = {}
        """Layouts that a custom call asks of its operands."""
        self._form = form
        self._memo = memo
        self._checked: set[str] = set()

    def __missing__(self, text: str) -> Attributes:
        match = TAIL.match(text)
        assert match is not None  # it matches the empty text too
        own = match[1]
        if match.end() != len(text):
            self._memo.unusual.common_attributes(text[len(own) :])
        # Most texts differ in their metadata only: the opcode's own part has been seen before.
        if own not in self._checked:
            self._check(own)
        if own in self.constraints:
            self.constraints[text] = self.constraints[own]
        if self._form.kind == CALLING:
            self.called[text] = self.called[own]
        shared = self._memo.attributes
        attributes = shared.get(text)
        if attributes is None:
            attributes = shared[text] = Attributes(text)
        self[text] = attributes
        return attributes

    def _check(self, own: str) -> None:
        pairs = OWN.findall(own)
        values = dict(pairs)
        form = self._form
        if len(values) != len(pairs) or not form.required <= values.keys() <= form.allowed:
            raise Declined
        if form.opcode in ONE_DIMENSION and "," in values.get("dimensions", ""):
            raise Declined
        if values.get("use_global_device_ids") == "true" and "channel_id" not in values:
            raise Declined
        constraints = values.get("operand_layout_constraints")
        if constraints is not None:
            parts = split_tuple(f"({constraints[1:-1]})")
            if parts is None:
                raise Declined
            self.constraints[own] = [self._memo.shapes[p] for p in parts]
        if form.kind == CALLING:
            self.called[own] = self._find_called(pairs)
        self._checked.add(own)

    def _find_called(self, pairs: list[tuple[str, str]]) -> Called:
        """The computations named, in XLA's order; all of them stand earlier in the text."""
        out: list[tuple[str, Computation]] = []
        for key, value in pairs:
            if key in _CALL_ORDER:
                for name in CALLED_NAME.findall(value):
                    callee = self._memo.computations.get(name)
                    if callee is None:
                        raise Declined
                    out.append((key, callee))
        if len(out) > 1:
            out.sort(key=lambda c: _CALL_ORDER[c[0]])
        return tuple(out)
