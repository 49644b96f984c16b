"""Loop passes before fusion: fewer carried values, moved constants and invariants, loops of one iteration."""
