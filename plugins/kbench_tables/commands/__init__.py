"""Commands for a user's own table."""
