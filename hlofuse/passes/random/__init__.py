"""Random numbers: the generators in plain operations, and the passes that write them."""
