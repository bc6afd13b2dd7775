"""A recommendation for a user's own table: what it holds, which methods, which one, and why."""
