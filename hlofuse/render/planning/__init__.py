"""Selection and detail of the drawn parts, decided before any box is made."""
