"""Execution of tasks: in sandboxes of this machine, or on the workers of a Dask cluster."""
