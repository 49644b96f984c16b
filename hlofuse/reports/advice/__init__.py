"""Recipes: changes to a program, found in a module and tried on it."""
