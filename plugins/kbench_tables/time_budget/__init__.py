"""The order of tasks within a time limit."""
