"""Rules of passes before and after fusion that decide what fusion has to work with (RW…)."""
