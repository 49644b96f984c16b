"""Plots of passes, kernels' times and the roofline."""
