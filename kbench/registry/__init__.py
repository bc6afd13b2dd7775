"""Registry of components, made from entry points, with a summary of each component."""
