"""Thousands of modules at once: `hlofuse batch`, its tables, and what two runs differ in."""
