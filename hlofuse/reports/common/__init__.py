"""Shared parts of several reports."""
