"""A suite file becomes cells with keys, or all its errors at once.

An error is a line that begins with its place, a path such as
``block[0].feature_maps[2].n_componets``; the value that is wrong comes last.
"""
