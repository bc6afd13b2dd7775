"""A suite file becomes cells with keys, or all its mistakes at once.

A mistake is a line ``place: what was found; what is allowed``. The place is a path
such as ``block[0].feature_maps[2].n_componets``.
"""
