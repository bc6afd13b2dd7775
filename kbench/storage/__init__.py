"""What survives a kill: the journal, its locks, whole files, the data cache."""
