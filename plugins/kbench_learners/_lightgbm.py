"""Gradient boosting by LightGBM, with rounds chosen on held-out rows.

LightGBM comes with the extra ``lightgbm``.
"""

from dataclasses import dataclass

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from kbench_learners._estimator import Weighted
from kbench_learners._held_out import ROUNDS, SHARE, HeldOutClassifier, HeldOutRegressor


@dataclass(eq=False, repr=False)
class _LightGBM(Weighted):
    """Parameters of LightGBM, and its fit."""

    _takes_missing = True

    learning_rate: float = 0.1
    num_leaves: int = 31
    min_child_samples: int = 20
    reg_lambda: float = 0.0
    n_estimators: int = 500
    n_iter_no_change: int = 10
    random_state: int | np.random.RandomState | None = None

    def _options(self, stops: bool) -> dict[str, object]:
        given = self.get_params(deep=False)
        del given["n_iter_no_change"], given["random_state"]
        return {
            **given,
            "n_estimators": self.n_estimators if stops else min(ROUNDS, self.n_estimators),
            "n_jobs": 1,
            "deterministic": True,
            "force_row_wise": True,  # else it times both ways, which decides rounding errors
            "verbose": -1,
        }

    def _fit_model(self, model, X, y, stops, sample_weight):
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        model.set_params(random_state=seed)
        if not stops:
            model.fit(X, y, sample_weight=sample_weight)
            self.n_iter_ = model.n_iter_
            return model
        strata = y if is_classifier(self) else None
        weighted = [] if sample_weight is None else [sample_weight]
        (X, held_X, y, held_y, *weights) = train_test_split(
            X, y, *weighted, test_size=SHARE, random_state=seed, stratify=strata
        )
        model.fit(
            X,
            y,
            sample_weight=weights[0] if weights else None,
            eval_X=held_X,
            eval_y=held_y,
            eval_sample_weight=weights[1:] or None,
            callbacks=[early_stopping(self.n_iter_no_change, verbose=False)],
        )
        self.n_iter_ = model.best_iteration_
        return model


class LightGBMClassifier(_LightGBM, HeldOutClassifier):
    """LightGBM gradient boosting with early stopping on held-out rows.

    Rounds end when the loss of a stratified tenth of the training rows has not improved for
    `n_iter_no_change` of them, and the best ones are kept. With fewer than 500 rows, one row of
    a class or more classes than held-out rows, nothing is held out, and there are 100 rounds.
    One thread, and deterministic. It needs the extra ``lightgbm``.

    Parameters
    ----------
    learning_rate : float, default 0.1
        Shrinkage of each tree.
    num_leaves : int, default 31
        Maximum number of leaves of a tree.
    min_child_samples : int, default 20
        Minimum number of rows of a leaf.
    reg_lambda : float, default 0
        Penalty of the leaves' values.
    n_estimators : int, default 500
        Maximum number of rounds; each fits one tree, or for several classes one per class.
    n_iter_no_change : int, default 10
        Rounds without improvement.
    random_state : int, RandomState or None, default None
        Seed of the held-out rows.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    model_ : lightgbm.LGBMClassifier
        The fitted model, of labels 0..n_classes-1.
    n_iter_ : int
        Rounds that are kept.

    References
    ----------
    G. Ke et al., LightGBM: a highly efficient gradient boosting decision tree, NIPS 2017. The
    default search space is that of `GradientBoostingClassifier`.
    """

    _library = LGBMClassifier


class LightGBMRegressor(_LightGBM, HeldOutRegressor):
    """LightGBM's gradient boosting of squared errors, with rounds chosen on held-out rows.

    As `LightGBMClassifier`, with the error of a tenth of the training rows.

    Parameters
    ----------
    learning_rate, num_leaves, min_child_samples, reg_lambda, n_estimators, n_iter_no_change
        As in `LightGBMClassifier`.
    random_state : int, RandomState or None, default None
        Seed of the held-out rows.

    Attributes
    ----------
    model_ : lightgbm.LGBMRegressor
        The fitted model.
    n_iter_ : int
        Rounds that are kept.

    References
    ----------
    G. Ke et al., LightGBM: a highly efficient gradient boosting decision tree, NIPS 2017.
    """

    _library = LGBMRegressor
