"""What passes that rewrite products and convolutions, or take their neighbours along, did to lists of users."""
