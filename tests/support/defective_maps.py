"""Feature maps with one planted defect each, and the check that must catch it."""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.arrays import like, namespace, to_numpy
from kbench.estimators import ExplicitMap
from kbench.kernels import Gaussian


class Fourier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random Fourier features, without a defect."""

    def __init__(self, n_components=64, gamma=0.5, random_state=None):
        self.n_components = n_components
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, X, y=None):
        X = validate_data(self, X, dtype=np.float64)
        rng = check_random_state(self.random_state)
        self.W_ = np.sqrt(2 * self.gamma) * rng.normal(size=(X.shape[1], self.n_components))
        self.b_ = rng.uniform(0, 2 * np.pi, self.n_components)
        self._n_features_out = self.n_components
        return self

    def transform(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.sqrt(2 / self.n_components) * np.cos(X @ self.W_ + self.b_)


def gaussian_gram(fitted, X, Y):
    return Gaussian(bandwidth=1 / np.sqrt(2 * fitted.gamma))(X, Y)


class Shrunken(Fourier):
    """Biased: a defect only of a map that is declared unbiased."""

    def transform(self, X):
        return 0.9 * super().transform(X)


class OneShort(Fourier):
    def transform(self, X):
        return super().transform(X)[:-1] if len(X) > 2 else super().transform(X)


class Undefined(Fourier):
    def transform(self, X):
        Z = super().transform(X)
        Z[:, 0] = np.nan
        return Z


class Centred(Fourier):
    def transform(self, X):
        Z = super().transform(X)
        return Z - Z.mean(axis=0) / 100


class Ordered(Fourier):
    def transform(self, X):
        Z = super().transform(X)
        return Z + np.linspace(0, 1e-2, len(Z))[:, None] * (len(Z) > 1) * (Z > 0)


class Careless(Fourier):
    def fit(self, X, y=None):
        super().fit(X, y)
        self.b_ = np.random.uniform(0, 6, self.n_components)  # noqa: NPY002
        return self


class Seedless(Fourier):
    def fit(self, X, y=None):
        super().fit(X, y)
        self.b_ = np.random.default_rng().uniform(0, 6, self.n_components)
        return self


class Rude(Fourier):
    def transform(self, X):
        Z = super().transform(X)
        if isinstance(X, np.ndarray):
            X *= 2
        return Z


class Double(Fourier):
    def transform(self, X):
        Z = super().transform(X)
        return -Z if getattr(X, "dtype", None) == np.float32 else Z


class Loose(Fourier):
    def transform(self, X):
        if hasattr(X, "tocsr"):
            return -super().transform(X.toarray())
        return super().transform(X)

    def fit(self, X, y=None):
        return super().fit(X.toarray() if hasattr(X, "tocsr") else X, y)


class Baffled(Fourier):
    def fit(self, X, y=None):
        if hasattr(X, "tocsr"):
            raise IndexError("tuple index out of range")
        return super().fit(X, y)


class Unpicklable(Fourier):
    def fit(self, X, y=None):
        super().fit(X, y)
        self.cos_ = lambda x: x
        return self

    def __deepcopy__(self, memo):
        twin = type(self)(**self.get_params())
        twin.__dict__.update(vars(self))
        return twin


class Forgetful(Fourier):
    def __getstate__(self):
        state = dict(super().__getstate__())
        if "b_" in state:
            state["b_"] = np.zeros_like(state["b_"])
        return state

    __deepcopy__ = Unpicklable.__deepcopy__


class Meddling(Fourier):
    def __init__(self, n_components=64, gamma=0.5, random_state=None):
        super().__init__(n_components, gamma and float(gamma) + 0.0001, random_state)


class Permissive(Fourier):
    def transform(self, X):
        check_is_fitted(self)
        X = check_array(X)
        X = np.hstack([X, np.zeros((len(X), 9))])[:, : self.n_features_in_]
        return np.sqrt(2 / self.n_components) * np.cos(X @ self.W_ + self.b_)


class Misnamed(Fourier):
    def get_feature_names_out(self, input_features=None):
        return np.array([f"f{i}" for i in range(self.n_components - (input_features is None))])


class Stripped(Fourier):
    def set_output(self, *, transform=None):
        return self


class Impatient(Fourier):
    def transform(self, X):
        _ = self.W_  # AttributeError
        return super().transform(X)


class Nosy(Fourier):
    def fit(self, X, y=None):
        super().fit(X, y)
        self.b_ = self.b_ + (0 if y is None else np.asarray(y)[0])
        return self


class Demanding(Fourier):
    def fit(self, X, y=None):
        if y is None:
            raise ValueError("y is needed")
        return super().fit(X)


class Leaking(Fourier):
    def transform(self, X):
        Z = super().transform(X)
        self.b_ = self.b_ + 0.01
        return Z


class Unscaled(Fourier):
    def transform(self, X):
        return super().transform(X) * np.sqrt(self.n_components)


class Sloped(Fourier):
    """A map with gradients, without a defect."""

    def input_gradient(self, X, coef):
        X = validate_data(self, X, dtype=np.float64, reset=False)
        slopes = -np.sqrt(2 / self.n_components) * np.sin(X @ self.W_ + self.b_)
        gradients = np.stack([(slopes * each) @ self.W_.T for each in np.atleast_2d(coef)])
        return gradients[0] if np.ndim(coef) == 1 else gradients


class Steep(Sloped):
    def input_gradient(self, X, coef):
        return np.sqrt(self.n_components) * super().input_gradient(X, coef)


class Flat(Sloped):
    def input_gradient(self, X, coef):
        return super().input_gradient(X, np.atleast_2d(coef)).sum(axis=0)


class Portable(ExplicitMap):
    """Random Fourier features that compute where their inputs are, without a defect."""

    takes_any_namespace = True

    def __init__(self, n_components=64, gamma=0.5, random_state=None):
        self.n_components = n_components
        self.gamma = gamma
        self.random_state = random_state

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        draws = rng.normal(size=(X.shape[1], self.n_components))
        self.W_ = like(np.sqrt(2 * self.gamma) * draws, X)
        self.b_ = like(rng.uniform(0, 2 * np.pi, self.n_components), X)
        return self.n_components

    def _transform(self, X):
        factor = float(np.sqrt(2 / self.n_components))
        return factor * namespace(X).cos(X @ like(self.W_, X) + like(self.b_, X))


class Tied(Portable):
    """Computes with numpy only, and promises more."""

    def _transform(self, X):
        return np.sqrt(2 / self.n_components) * np.cos(X @ self.W_ + self.b_)


class Elsewhere(Portable):
    """Has other features for arrays of another library."""

    def _transform(self, X):
        return super()._transform(X) * (1.0 if namespace(X) is np else 1.01)


class OfTheStandard(Portable):
    """Asks arrays for their namespace, which those of torch have not."""

    def _transform(self, X):
        xp = np if namespace(X) is np else X.__array_namespace__()
        return super()._transform(X) * xp.asarray(1.0)


class Returning(Portable):
    """Returns to the host."""

    def _transform(self, X):
        return to_numpy(super()._transform(X))


MAP_DEFECTS = {
    OneShort: "check_outputs",
    Undefined: "check_outputs",
    Centred: "check_rows_are_independent",
    Ordered: "check_rows_are_independent",
    Careless: "check_determinism",
    Seedless: "check_determinism",
    Double: "check_float32",
    Loose: "check_sparse",
    Misnamed: "check_set_output",
    Stripped: "check_set_output",
    Impatient: "check_unfitted",
    Nosy: "check_learns_nothing_from_y",
    Leaking: "check_transform_learns_nothing",
    Unscaled: "check_gram_error",
    Steep: "check_input_gradient",
    Flat: "check_input_gradient",
    Tied: "check_array_api",
    Elsewhere: "check_array_api",
    Returning: "check_array_api",
}

# what scikit-learn's estimator checks catch, and a part of the message
MAP_DEFECTS_OF_SKLEARN = {
    Rude: "do not write into inputs",
    Baffled: "check_estimator_sparse_array",
    Unpicklable: "keep no lambdas",
    Forgetful: "let __getstate__ return all fitted attributes",
    Meddling: "let __init__ only store each parameter",
    Permissive: "call validate_data",
}
