"""Report sections and MLflow views that come with kbench."""
