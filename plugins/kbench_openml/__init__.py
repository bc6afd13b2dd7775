"""openml."""
