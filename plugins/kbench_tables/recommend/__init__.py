"""Recommend a method for a user's table: profile, candidate methods, choice and reasons."""
