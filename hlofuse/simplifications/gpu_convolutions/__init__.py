"""Convolutions that cuDNN computes."""
