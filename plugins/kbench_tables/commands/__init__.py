"""Commands for a user's table."""
