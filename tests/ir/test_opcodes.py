"""The table of opcodes and their traits."""

from __future__ import annotations

import pytest

from hlofuse.ir.opcodes import with_operands, with_trait


def test_a_trait_is_that_of_its_rows() -> None:
    assert with_trait("async") == {"async-start", "async-update", "async-done"}
    assert with_trait("commutative") < with_trait("elementwise") & with_operands(2)
    assert with_trait("free") < with_trait("no-kernel")


def test_an_unknown_trait_is_a_fault() -> None:
    with pytest.raises(ValueError, match="no opcode has the trait 'asynch'"):
        with_trait("asynch")
