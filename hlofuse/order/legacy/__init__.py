"""The order of users as the passes in front of fusion in jaxlib 0.4.35 leave it: one file a pass."""
