"""Priority fusion: the producer that saves most is fused first."""
