"""What a replay means to a user: explanations, the story of one instruction, figures of a module."""
