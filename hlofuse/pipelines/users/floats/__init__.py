"""What float normalization and the simplification of conversions did to lists of users."""
