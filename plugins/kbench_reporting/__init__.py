"""`kbench report` and `kbench plot`: results as a page, as tables and figures for a paper."""
