"""What is installed and what is in the data cache: `kbench list`, `show` and `data`."""
