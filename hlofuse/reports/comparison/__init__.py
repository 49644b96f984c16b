"""Two compilations of one module: a what-if against XLA, two devices, or two releases."""
