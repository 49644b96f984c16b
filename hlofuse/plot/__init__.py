"""Figures for people who would rather look than read: passes, kernels' times, the roofline."""
