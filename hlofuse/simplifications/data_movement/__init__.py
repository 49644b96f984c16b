"""Passes on operations that only move elements: broadcasts, reshapes, slices."""
