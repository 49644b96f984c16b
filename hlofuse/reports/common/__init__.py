"""What the reports of several questions share."""
