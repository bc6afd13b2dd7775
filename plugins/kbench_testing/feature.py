"""The conformance kit and the scaffold have no hooks: their commands are in the metadata."""
