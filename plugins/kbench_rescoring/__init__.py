"""Rescoring: metrics that are added to results, from the predictions that were kept.

A suite that compares the metric of a plugin gets it here, before trackers see its results;
``kbench rescore`` adds any metric to existing results.
"""
