"""XLA's loop passes before fusion: fewer carried values, moved constants and invariants,
inlined loops of one iteration."""
