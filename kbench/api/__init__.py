"""kbench from Python: the work of the command line, as functions that return data frames."""
