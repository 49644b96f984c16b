"""Use-list order after the passes before fusion in jaxlib 0.4.35: one file a pass."""
