"""A task runs somewhere: in a sandbox of this machine, or on the workers of a Dask cluster."""
