"""XLA's model of kernel run times on a GPU, as in jaxlib 0.11.1 (`xla/service/gpu/model`)."""
