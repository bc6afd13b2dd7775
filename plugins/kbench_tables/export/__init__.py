"""Export of a measured cell as a model: fitted on all rows, saved with a card.

The pipeline takes the table as its user has it; its steps are in `kbench_tables.export.pipeline`.
"""
