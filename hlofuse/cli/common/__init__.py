"""What commands share: options, ways in to a replay, ways out to a terminal or a file."""
