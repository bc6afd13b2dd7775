"""nbcs."""
