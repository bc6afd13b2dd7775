"""Storage that survives a kill: the journal, its locks, atomic files, the data cache."""
