"""Export a method of a cell as a model: fitted on all rows, saved with a model card.

The input of the pipeline is the user's original table; its steps are in
`kbench_tables.export.pipeline`.
"""
