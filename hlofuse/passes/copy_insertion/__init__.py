"""Copies that keep values apart which would share a buffer."""
