"""Two compilations of one module: a what-if against XLA, or two releases."""
