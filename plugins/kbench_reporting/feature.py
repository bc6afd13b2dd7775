"""The entry point of the commands, which need no hook."""
