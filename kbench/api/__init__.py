"""kbench from Python: what the command line does, as functions that return data frames."""
