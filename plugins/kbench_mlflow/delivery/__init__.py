"""Delivery of finished cells as MLflow runs: now, or when the store answers again."""
