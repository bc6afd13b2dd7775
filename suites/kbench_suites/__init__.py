"""Suite files that come with kbench."""
