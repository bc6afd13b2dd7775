"""`kbench report` and `kbench plot`: results as a page, as tables and pictures for a paper."""
