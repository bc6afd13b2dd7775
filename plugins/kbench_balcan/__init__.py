"""balcan."""
