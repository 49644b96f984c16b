"""Handlers that turn the grammar's rules into values, a file for each part of a text."""
