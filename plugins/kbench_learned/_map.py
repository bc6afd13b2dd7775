"""`LearnedMetricMap`: a feature map around another one, in a learned metric."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state, check_X_y, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.arrays import host_type, like, namespace, take, to_numpy
from kbench.estimators import InputGradient, validated
from kbench.parameters import check_choice, check_parameters, choice, integer, number
from kbench_learned._metric import Form, Trajectory, choose, fits, learn, one_hot_groups
from kbench_learned._ridge import encode_labels, encode_numbers, make_folds

DIFFERENTIABLE = (
    *("rff", "orthogonal-rff", "qmc-rff", "leverage-rff", "fastfood", "sorf", "laplace-rff"),
    *("matern-rff", "nystroem", "nystroem-kmeans", "nystroem-leverage", "nystroem-rpcholesky"),
    *("arc-cosine", "nbcs", "nbcs-rotated", "nbcs-adaptive", "simplicial-mesh"),
)
"""Maps of kbench that have gradients, for messages."""


def refuse_without_gradient(base: object) -> None:
    """Raise a ValueError if a map has no gradient; it names those that have one."""
    if isinstance(base, str):
        raise ValueError(
            f"base_map must be a feature map, got the string {base!r}; a suite file has "
            f'base_map = {{ name = "{base}" }}'
        )
    if not (hasattr(base, "fit") and hasattr(base, "transform")):
        raise ValueError(f"base_map must be a feature map, got {base!r}")
    try:
        _ = base.input_gradient
    except AttributeError as error:
        reason = error.__cause__ or f"{type(base).__name__} has no method input_gradient"
        raise ValueError(
            f"base_map must have a gradient in its inputs: {reason}. Maps of kbench that have "
            f"one are {', '.join(DIFFERENTIABLE)}"
        ) from None


def with_parameters(base: BaseEstimator, **given: object) -> BaseEstimator:
    """Return a clone of a map with parameters that are not None, or a ValueError."""
    base = clone(base)
    params = base.get_params(deep=False)
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in params:
            raise ValueError(
                f"{name} is not a parameter of base_map={type(base).__name__}, which has "
                f"{', '.join(sorted(params))}"
            )
    return base.set_params(**given)


# A column whose standard deviation is this small beside its largest value is constant.
_CONSTANT = 1e-12


@dataclass(eq=False, repr=False)
class _LearnedMap(InputGradient, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Fit and features of a map in a learned metric."""

    base_map: object
    _: KW_ONLY
    metric: str = choice("auto", ("auto", "full", "diagonal", "low_rank"))
    rank: int = integer(10, least=1)
    rounds: int = integer(10, least=0)
    patience: int = integer(2, least=1)
    regularization: float = number(1e-4, least=0)
    groups: object = "one-hot"
    random_state: int | np.random.RandomState | None = None

    def fit(self, X, y):
        """Learn the metric, and fit the map in it.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Training inputs, best standardised.
        y : array-like, shape (n_samples,)
            Targets if they are floating-point numbers, else labels.

        Returns
        -------
        self
        """
        self._check_parameters()
        if issparse(X):
            raise ValueError(
                f"X is sparse, and a learned map takes dense inputs: a metric of {X.shape[1]:,} "
                "columns is a dense matrix. Use base_map without learning, or make X an array "
                "if it has few columns"
            )
        if namespace(X) is np:
            X, y = validate_data(self, X, y, dtype=np.float64)
        else:
            X = validated(self, X, (np.float64,), reset=True)
            _, y = check_X_y(np.zeros((X.shape[0], 1)), to_numpy(y))
        xp = namespace(X)
        y = np.asarray(y)
        targets = encode_numbers(y) if y.dtype.kind == "f" else encode_labels(y)
        rng = check_random_state(self.random_state)
        base = self._base(rng)
        self.mean_ = xp.mean(X, axis=0)
        varies = to_numpy(xp.std(X, axis=0) > _CONSTANT * xp.max(xp.abs(X), axis=0))
        if not varies.any():
            raise ValueError(
                "X has no column that varies, so that no metric can be learned from it"
            )
        groups = self._column_groups(to_numpy(X))
        names = ("full", "diagonal") if self.metric == "auto" else (self.metric,)
        forms = [Form(name, self.regularization, self.rank, varies, groups) for name in names]
        options = [(form, factor) for factor in self._factors() for form in forms]
        X = X - self.mean_
        folds = make_folds(targets.strata, rng) if self.rounds else []
        tried = self._try_forms(base, X, like(targets.columns, X), folds, options)
        chosen, self.round_ = choose(tried, len(folds[0].fit) if folds else 0)
        form, self.factor_ = options[chosen]
        self._keep(form, tried[chosen])
        self.base_map_ = with_parameters(base, bandwidth_factor=self.factor_)
        self.transform_ = like(self.transform_, X)
        inputs = X @ self.transform_
        self.base_map_.fit(inputs)
        self._n_features_out = self.base_map_.transform(take(inputs, slice(1))).shape[1]
        self.details_ = self._describe()
        return self

    def _try_forms(self, base, X, targets, folds, options):
        """Return what the rounds learned with each option, a form and a bandwidth factor."""
        identity = np.eye(X.shape[1])
        if not folds:
            return [Trajectory(matrices=[identity]) for _ in options]
        tried = []
        for factor, several in groupby(options, key=itemgetter(1)):
            scaled = with_parameters(base, bandwidth_factor=factor)
            # round 0 of all forms is the same
            first = fits(scaled, X, targets, folds, [identity] * len(folds))
            given = scaled, X, targets, folds, self.rounds, self.patience
            tried += [learn(*given, form, first) for form, _ in several]
        return tried

    def _keep(self, form, learned):
        self.form_ = form.name
        self.errors_ = np.asarray(learned.errors)
        self.n_rounds_ = max(0, len(self.errors_) - 1)
        if learned.lost_rank:
            rounds = f"after round {self.n_rounds_}, so that no further metric was learned"
            warnings.warn(f"all gradients are 0 {rounds}", UserWarning, stacklevel=3)
        matrix = learned.matrices[self.round_]
        self.metric_ = matrix / matrix.max()
        self.transform_ = form.final(matrix) if self.round_ else matrix

    def transform(self, X):
        """Map `X` to features.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        {ndarray, CSR matrix}, shape (n_samples, n_features_out)
            As `base_map` returns them: of maps that keep float32, float32 for float32 inputs.
            All is computed in float64: a metric that is long in few directions would lose digits.
        """
        check_is_fitted(self)
        X = validated(self, X, (np.float64, np.float32), reset=False)
        inputs = like(X, X, namespace(X).float64)
        inputs = (inputs - like(self.mean_, inputs)) @ like(self.transform_, inputs)
        features = self.base_map_.transform(inputs)
        keeps = host_type(X).name in self.__sklearn_tags__().transformer_tags.preserves_dtype
        return like(features, X) if keeps else features

    def _gradient(self, X, coef):
        transform = like(self.transform_, X)
        inner = self.base_map_.input_gradient((X - like(self.mean_, X)) @ transform, coef)
        return inner @ transform.T

    def _check_parameters(self):
        check_parameters(self)
        if self.groups is None or isinstance(self.groups, str):
            otherwise = "None or lists of column numbers"
            check_choice(self.groups or "one-hot", "groups", ("one-hot",), otherwise=otherwise)
        refuse_without_gradient(self.base_map)

    def _base(self, rng):
        """Return an unfitted `base_map` with the parameters that were passed by name."""
        # factors are set one by one
        with_parameters(self.base_map, bandwidth_factor=self._factors()[0])
        # a map of cells has neither this nor a bandwidth (`LearnedPartitionMap`)
        base = with_parameters(self.base_map, n_components=getattr(self, "n_components", None))
        if base.get_params(deep=False).get("random_state", 0) is None:
            # the same in all rounds, so that their errors differ by the metric only
            seed = self.random_state
            is_seed = isinstance(seed, int | np.integer)
            base.set_params(random_state=seed if is_seed else rng.randint(2**31 - 1))
        return base

    def _factors(self):
        given = getattr(self, "bandwidth_factor", None)
        factors = list(given) if isinstance(given, list | tuple | np.ndarray) else [given]
        if not factors:
            raise ValueError("bandwidth_factor must have at least one value, got none")
        return factors

    def _column_groups(self, X):
        if self.groups == "one-hot":
            return one_hot_groups(X)
        groups = [np.asarray(group) for group in self.groups or ()]
        for group in groups:
            if group.dtype.kind not in "iu" or not np.isin(group, np.arange(X.shape[1])).all():
                raise ValueError(
                    f"groups must have column numbers from 0 to {X.shape[1] - 1}, got "
                    f"{group.tolist()}"
                )
        return groups

    def _describe(self):
        columns = np.sort(np.argsort(-np.diag(self.metric_), kind="stable")[:30])
        return {
            "metric": self.form_,
            "bandwidth_factor": self.factor_,
            "round": self.round_,
            "errors": [float(f"{error:.4g}") for error in self.errors_],
            "columns": columns.tolist(),
            "matrix": [
                [float(f"{value:.2g}") for value in row]
                for row in self.metric_[np.ix_(columns, columns)]
            ],
        }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        base = self.base_map
        inner = get_tags(base) if hasattr(base, "__sklearn_tags__") else None
        tags.transformer_tags.preserves_dtype = (
            inner.transformer_tags.preserves_dtype if inner else []
        )
        tags.array_api_support = inner is not None and inner.array_api_support
        return tags


@dataclass(eq=False, repr=False)
class LearnedMetricMap(_LearnedMap):
    r"""A feature map of inputs transformed by a metric learned from gradients of a first fit.

    The map :math:`\varphi` of `base_map` gives a predictor :math:`f(x) = w \cdot \varphi(x)` by
    ridge regression. Its average gradient outer product (AGOP),

    .. math:: M = \frac{1}{n} \sum_i \nabla f(x_i) \nabla f(x_i)^\top,

    says along which directions of the inputs f changes. Inputs become
    :math:`(M / \max M)^{1/2} x`, and the next round fits `base_map` to them: its bandwidth is
    relative to the new distances. That is a recursive feature machine [1]_ [2]_ with explicit
    features. Labels are -1 and 1, one column for each class against the rest.

    Parameters
    ----------
    base_map : estimator
        A feature map with a method ``input_gradient(X, coef)``; it is not fitted itself.
    n_components : int, optional
        Parameter of `base_map` with this name; by default, `base_map` keeps its value.
    bandwidth_factor : float or sequence of float, optional
        Likewise; of several values, the one whose best round has the smallest error is used.
    metric : {"auto", "full", "diagonal", "low_rank"}, default "auto"
        Form of M. "diagonal" weights columns. It is equivariant to shifts only, needs
        fewer rows, and is better where single columns matter. "low_rank" learns as "full" does,
        and keeps the `rank` first eigenvectors of the result, so that `base_map` has inputs of
        that dimension; rounds are compared after that. "auto" tries "full"
        and "diagonal", and keeps the one whose best round has the smaller error.
    rank : int, default 10
        Directions of a metric "low_rank".
    rounds : int, default 10
        Maximum number of rounds; with 0, `base_map` is fitted to the inputs.
    patience : int, default 2
        Learning stops after this many rounds in a row whose errors are not 0.5 % below the smallest
        one before them.
    regularization : float, default 1e-4
        This multiple of the mean of M's diagonal is added to the diagonal, so that no direction
        is lost for later rounds.
    groups : {"one-hot", None} or sequence of sequences of int, default "one-hot"
        Columns that have one weight in a "diagonal" metric: found indicators of nominal
        attributes (see Notes), none, or those given.
    random_state : int, RandomState or None, default None
        Seed of the held-out rows, and of `base_map` if it has none.

    Attributes
    ----------
    base_map_ : estimator
        `base_map`, fitted to the transformed inputs of all rows.
    metric_ : ndarray, shape (n_features, n_features)
        The learned M; its largest entry is 1. The identity where learning did not help.
    transform_ : ndarray, shape (n_features, n_directions)
        Inputs minus `mean_` are multiplied by it.
    mean_ : ndarray, shape (n_features,)
        Means of the columns.
    form_ : {"full", "diagonal", "low_rank"}
        The form of M.
    factor_ : float or None
        The bandwidth factor, if it was given.
    errors_ : ndarray, shape (n_rounds_ + 1,)
        Root mean squared error of held-out rows after 0, 1, ... rounds, in units of the
        standard deviation of the targets.
    round_ : int
        The round that was chosen: that with the smallest error, and 0 if its absolute errors are
        not smaller than those of the best fit without learning by more than 2.33 standard errors
        of the difference.
    n_rounds_ : int
        Rounds that were tried.
    details_ : dict
        For reports: ``metric`` (its form), ``bandwidth_factor``, ``round``, ``errors``, and of
        the at most 30 ``columns`` with the largest weights their part of M, ``matrix``.

    Raises
    ------
    ValueError
        `base_map` has no gradient or lacks a given parameter; all columns are constant; there
        is one class.

    Notes
    -----
    *What is estimated.* If f were the regression function, M would be the expected outer
    product of its gradient (EGOP), whose eigenvectors with eigenvalues above 0 span the
    directions on which the targets depend (Trivedi et al., UAI 2014). The fitted f is smoothed
    and noisy: M is a biased estimate, and the rounds are a heuristic without a guarantee of
    convergence. The round is therefore chosen by errors of held-out training rows, and 0 is
    among the choices. A fold holds out a fifth of the rows, and there are as many folds as hold
    out 1,000 rows; of fewer rows each is held out. All folds have the same ridge penalty. The
    round with the smallest mean squared error is taken if absolute errors fall by more than 2.33
    standard errors, which are those of the paired differences and count the rows that folds
    share [3]_: a test of level 1 %. The metric is that of the folds' matrices, divided by their
    traces and added up, and the last fit of `base_map` has all rows.

    *Invariance.* Learning with a "full" metric is equivariant to rotations and shifts of the
    inputs if the features' kernel is, and to nothing else: standardise the columns. Maps that
    scale each column themselves (`nbcs`, and meshes with ``scaling="standard"``) undo the weights
    of a "diagonal" metric.

    *Where it must fail.* If the first fit is no better than the mean, its gradients are noise,
    and so is M. The same holds for targets that depend on a direction through a function whose
    slope the first fit misses everywhere, and if all directions matter equally there is
    nothing to learn.

    *Cost.* A round takes time n (D d + D² + K d (D + d)) + D³ for n rows, d columns, D
    components and K outputs, in each fold, and memory D² and a block of rows. With more than
    4,096 components, at most 4,096 rows are used for the fit.

    *One-hot columns.* A weight for each indicator of one attribute is noise where levels are
    rare. A run of at least three columns with two values, of which exactly one is at its upper
    one in each row, is a group.

    *Constant columns* have weight 0, since no row says what slope they have.

    *Differences to xRFM* [2]_: explicit features instead of exact kernels; ridge penalties are
    chosen on held-out rows in each round; matrices of folds are added up, and no round is taken
    without evidence for it; no trees over the rows, and no choice of the exponents of a kernel.
    As there, M is divided by its largest entry, the root of M is applied to the inputs, and the
    bandwidth adapts in each round.

    References
    ----------
    .. [1] A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, Mechanism for feature
       learning in neural networks and backpropagation-free machine learning models, Science 383
       (2024).
    .. [2] D. Beaglehole, D. Holzmüller, A. Radhakrishnan and M. Belkin, xRFM: accurate,
       scalable, and interpretable feature learning models for tabular data, arXiv:2508.10053
       (2025).
    .. [3] C. Nadeau and Y. Bengio, Inference for the generalization error, Machine Learning 52
       (2003).

    Examples
    --------
    >>> import numpy as np
    >>> from kbench_baselines import RandomFourierFeatures
    >>> X = np.random.default_rng(0).normal(size=(300, 5))
    >>> y = np.sin(2 * X[:, 0])
    >>> learned = LearnedMetricMap(RandomFourierFeatures(100), metric="diagonal", random_state=0)
    >>> Z = learned.fit_transform(X, y)
    >>> Z.shape, np.diag(learned.metric_).argmax().item()
    ((300, 100), 0)
    >>> bool(np.diag(learned.metric_)[1:].max() < 0.05)
    True
    """

    _: KW_ONLY
    n_components: int | None = None
    bandwidth_factor: float | Sequence[float] | None = None


class LearnedPartitionMap(_LearnedMap):
    """`LearnedMetricMap` for maps without `n_components` and bandwidth, such as NBCS.

    Use it where the base map decides its number of features by itself, as nested barycentric
    coordinates do: an estimator must not have parameters that it would reject.

    Parameters
    ----------
    base_map, metric, rank, rounds, patience, regularization, groups, random_state
        As in `LearnedMetricMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from kbench_nbcs import NestedBarycentricMap
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> nested = NestedBarycentricMap(2, n_roots=2, rotate=True)
    >>> learned = LearnedPartitionMap(nested, rounds=1, metric="full", random_state=0)
    >>> learned.fit(X, X[:, 0] ** 2).form_
    'full'
    """
