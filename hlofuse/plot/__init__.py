"""Plots of passes, kernels' times and memory."""
