"""A search by its parts: map, learner, data, protocol and seed."""

from kbench.evaluation import search as module
from kbench.evaluation.embedding import Fitting
from kbench.evaluation.method import Method


def search(feature_map, learner, data, protocol, seed, criterion=None):
    method = Method(feature_map, learner, criterion=criterion)
    return module.search(Fitting(method, data, protocol, seed))
