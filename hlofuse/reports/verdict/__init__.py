"""The answer first: what runs, where the time goes, what is left to gain, and what to change."""
