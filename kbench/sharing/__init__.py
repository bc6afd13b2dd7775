"""Results that travel: bundles, and what is checked of those that others made."""
