"""What AlgebraicSimplifier and ReshapeMover did to lists of users."""
