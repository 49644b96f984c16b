"""Matrix products for Triton's emitter: split, fused with what is around them, tidied."""
