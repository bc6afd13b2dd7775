"""The mean of the targets, the baseline of regression."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kbench_learners._estimator import WeightedRegressor, row_weights


class MeanRegressor(WeightedRegressor):
    """Predict the mean of the targets, whatever the inputs.

    The predictive distribution is normal, with the variance of the targets and of their mean.

    Attributes
    ----------
    mean_ : float
        Mean of the targets.
    sd_ : float
        Standard deviation of a new one.

    Examples
    --------
    >>> model = MeanRegressor().fit([[0.0], [1.0], [5.0]], [1.0, 2.0, 3.0])
    >>> model.predict([[9.0]], return_std=True)
    (array([2.]), array([1.15470054]))
    """

    def predict(self, X, return_std=False):
        """Predict the mean.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs.
        return_std : bool, default False
            Return standard deviations too.

        Returns
        -------
        mean : ndarray, shape (n_samples,)
        sd : ndarray, shape (n_samples,)
            Of a new observation; only with `return_std`.
        """
        check_is_fitted(self)
        n = self._validated(X, reset=False).shape[0]
        mean = np.full(n, self.mean_)
        return (mean, np.full(n, self.sd_)) if return_std else mean

    def _check_parameters(self) -> None:
        """Check nothing: there are no parameters."""

    def _fit(self, X, y, sample_weight) -> None:
        weight = row_weights(sample_weight, len(y))
        count = float(len(y) if weight is None else weight.sum())
        self.mean_ = float(np.average(y, weights=weight))
        variance = float(np.average((y - self.mean_) ** 2, weights=weight))
        if count > 1.0:  # unbiased, and that of the mean
            variance *= (count + 1.0) / (count - 1.0)
        self.sd_ = float(np.sqrt(max(variance, np.finfo(float).tiny)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
