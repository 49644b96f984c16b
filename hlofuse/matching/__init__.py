"""Which instruction of one module is which of another: one key with its strictnesses, and pairs."""
