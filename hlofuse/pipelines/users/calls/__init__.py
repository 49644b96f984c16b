"""What inlining, loops and functions with several results did to lists of users."""
