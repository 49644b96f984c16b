"""Factorizations in plain operations, as XLA's client library writes them."""
