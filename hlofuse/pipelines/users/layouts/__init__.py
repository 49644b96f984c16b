"""What layout assignment and normalization did to lists of users."""
