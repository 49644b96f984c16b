"""From the rules of the grammar to values: a file of handlers for each part of a text."""
