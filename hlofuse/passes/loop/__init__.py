"""What XLA does to loops ahead of fusion: fewer values carried, constants and invariants moved, loops of one
iteration put in place."""
