"""The tiled model for fusions that Triton emits: the tilings, their costs, and XLA's choice.

model = TilingModel(device, release)
model.best_tiling(producer, consumer)  # a Tiling, or a Refusal with XLA's words
model.run_time(triton_fusion)  # with the tile sizes its backend config says
TritonSupport(device, release).refusal(producer)  # None, or why it may not join a Triton fusion
"""
