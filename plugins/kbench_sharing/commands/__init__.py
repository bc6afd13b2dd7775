"""Commands of shared results."""
