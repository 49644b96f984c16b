"""What a derivative computes on its way forth, ahead of its way back."""

from __future__ import annotations

from .test_program_order import order


def _of(path: str) -> str:
    return f'metadata={{op_name="jit(f)/{path}"}}'


def _loss(way_back: str) -> list[str]:
    """Only the results read the logarithm: the text has it behind what the derivative makes of the square."""
    return [
        f"%mul.1.0 = f32[8]{{0}} multiply(%p, %p), {_of('jvp()/mul')}",
        f"%div.2.0 = f32[8]{{0}} divide(%p, %mul.1.0), {_of('transpose(jvp())/div')}",
        f"%{way_back} = f32[8]{{0}} multiply(%div.2.0, %p), {_of('transpose(jvp())/mul')}",
        f"%log.1.0 = f32[8]{{0}} log(%mul.1.0), {_of('jvp()/log')}",
        f"%tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%{way_back}, %log.1.0)",
    ]


def test_what_only_results_read_is_ahead_of_the_way_back() -> None:
    assert order(*_loss("mul.2.0")) == ["mul.1.0", "log.1.0", "div.2.0", "mul.2.0"]


def test_not_behind_another_derivative() -> None:
    """The product of the way back has the lower number: forth goes another derivative."""
    lines = [line.replace("mul.1.0", "mul.3.0") for line in _loss("mul.2.0")]
    assert order(*lines)[-1] == "log.1.0"


def test_what_it_reads_goes_along() -> None:
    lines = _loss("mul.2.0")
    lines[3:4] = [
        f"%abs.1.0 = f32[8]{{0}} abs(%mul.1.0), {_of('abs')}",
        f"%log.1.0 = f32[8]{{0}} log(%abs.1.0), {_of('jvp()/log')}",
    ]
    assert order(*lines) == ["mul.1.0", "abs.1.0", "log.1.0", "div.2.0", "mul.2.0"]
