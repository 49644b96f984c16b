"""The order of users in XLA's memory, which no text carries: one file a mechanism that made it."""
