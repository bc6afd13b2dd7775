"""zero_one."""
