"""Finished cells become MLflow runs: now, or when the store answers again."""
