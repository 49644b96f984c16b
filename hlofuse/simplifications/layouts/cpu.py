"""What XLA:CPU asks of layouts (`xla/service/cpu/cpu_layout_assignment.cc`): row-major operands, mostly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.cpu_dot import EIGEN, dot_strategy
from hlofuse.analysis.eigen_convolution import why_not_eigen
from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.shape import Shape
from hlofuse.simplifications.algebraic.dot import dims
from hlofuse.simplifications.layouts.assignment import assign_layouts
from hlofuse.simplifications.layouts.choosing import laid_out, row_major
from hlofuse.simplifications.layouts.propagation import Propagation

_LEAST_COLUMN_MAJOR_BYTES = 32


@dataclass(frozen=True)
class CpuLayoutAssignment:
    """`layout-assignment`; it always counts as a change."""

    name: ClassVar[str] = "layout-assignment"

    def run(self, module: Module) -> bool:
        assign_layouts(module, _ask)
        return True


def _ask(layouts: Propagation, computation: Computation) -> None:
    """`AddBackendConstraints`."""
    operands = layouts.of(computation).operands
    flipped: dict[Instruction, bool] = {}
    for i in list(computation):
        if _is_row_major(i):
            layouts.set_instruction(_row_major(i.shape), i)
            for number, operand in enumerate(i.operands):
                layouts.set_operand(_row_major(operand.shape), i, number)
            continue
        number_ = _column_major_operand(i)
        if number_ is not None and i.operands[number_].opcode == "constant":
            constant = i.operands[number_]
            if constant not in flipped:
                flipped[constant] = all(_reads_columns(u, constant) for u in constant.users)
            if flipped[constant]:
                layouts.set_operand(laid_out(constant.shape, tuple(range(constant.shape.rank))), i, number_)
                continue
        for number, operand in enumerate(i.operands):
            if (i, number) in operands or not operand.shape.is_array:
                continue
            if not layouts.points_to.is_forwarded(i, number):
                layouts.set_operand(_row_major(operand.shape), i, number)


def _row_major(shape: Shape) -> Shape:
    return laid_out(shape, row_major(shape.rank))


def _is_row_major(i: Instruction) -> bool:
    """`OperandsAndResultMustHaveRowMajorLayout`."""
    if i.opcode == "convolution":
        return why_not_eigen(i) is None
    if i.opcode == "dot":
        return bool(dims(i, "batch", 0)) or dot_strategy(i)[0] == EIGEN
    return i.opcode == "custom-call" and i.attributes.get("custom_call_target") == "TopK"


def _column_major_operand(i: Instruction) -> int | None:
    """`ProfitableToMakeDotOperandColumnMajor` of a vector times a matrix."""
    if i.opcode != "dot" or i.shape.rank > 1 or i.operands[0].shape.rank != 1:
        return None
    if dims(i, "contracting", 1)[:1] != (0,):
        return None
    size = (i.shape.bit_width + 7) // 8 * i.operands[0].shape.element_count
    return 1 if size >= _LEAST_COLUMN_MAJOR_BYTES else None


def _reads_columns(user: Instruction, constant: Instruction) -> bool:
    number = _column_major_operand(user)
    return number is not None and user.operands[number] is constant and user.operands.count(constant) == 1
