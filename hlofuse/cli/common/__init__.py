"""Shared parts of commands: options, replay inputs, output to a terminal or a file."""
