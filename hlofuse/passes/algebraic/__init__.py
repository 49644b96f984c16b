"""AlgebraicSimplifier (`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`), a file for each family of
operations. Left out: dots and gathers with constants, convolutions as products, associative reordering."""
