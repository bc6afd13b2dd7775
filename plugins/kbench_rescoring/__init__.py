"""Rescoring: measures that are added to results, from the predictions that were kept.

A suite that compares the measure of a plugin gets it here, before trackers see its results;
``kbench rescore`` adds any measure to known results.
"""
