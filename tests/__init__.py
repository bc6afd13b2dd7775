"""Tests, in modules that mirror those they test."""
