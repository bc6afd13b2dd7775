"""The order of tasks in a limited time."""
