"""One folder for each question that a user asks."""
