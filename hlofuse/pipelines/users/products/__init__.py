"""What passes that rewrite products and convolutions, or take neighbours along, did to lists of users."""
