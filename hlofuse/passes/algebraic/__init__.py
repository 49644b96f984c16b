"""AlgebraicSimplifier (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), a file for each family of
operations. A rewrite that is not here is not made: those of dots and gathers with constants, of convolutions
as products and of associative reordering."""
