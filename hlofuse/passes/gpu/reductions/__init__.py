"""How reductions are made such as the emitters of XLA:GPU take."""
