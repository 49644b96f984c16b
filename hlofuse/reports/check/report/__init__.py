"""One small file for each format; the words they share are in `words`."""
