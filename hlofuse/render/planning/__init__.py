"""What of a module is drawn, and how closely: decided before any box is made."""
