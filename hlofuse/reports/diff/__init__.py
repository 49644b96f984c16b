"""`diff`: what changed between two modules, or between many."""
