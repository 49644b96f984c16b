"""Where ids and use-lists come from."""
