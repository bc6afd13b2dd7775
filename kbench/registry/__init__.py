"""Entry points become a registry of components, with a summary of each."""
