"""Commands of MLflow's store."""
