"""Facts about a module that change nothing: what runs, what it costs, how it hangs together."""
