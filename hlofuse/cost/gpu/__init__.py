"""XLA's model of how long a kernel runs on a GPU, as jaxlib 0.11.1 has it (`xla/service/gpu/model`)."""
