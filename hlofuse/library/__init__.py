"""The library: `hlofuse.open` reads an input as the command line does, and a `Report` answers about it."""
