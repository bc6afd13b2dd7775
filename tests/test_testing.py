"""The conformance kit: a planted defect is caught by the check that names it, and by no other."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench import (
    Dataset,
    DatasetError,
    DatasetSource,
    FeatureMap,
    Figure,
    KernelSpec,
    Learner,
    PluginError,
    Ref,
)
from kbench.kernels import Gaussian, Kernel, Polynomial
from kbench.testing import (
    CHECKS,
    ConformanceWarning,
    checks_of,
    components,
    parametrize_with_checks,
    run,
)

# ---------------------------------------------------------------------------
# Feature maps
# ---------------------------------------------------------------------------


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


MAP_DEFECTS = {
    OneShort: "check_outputs",
    Undefined: "check_outputs",
    Centred: "check_rows_are_independent",
    Ordered: "check_rows_are_independent",
    Careless: "check_determinism",
    Seedless: "check_determinism",
    Rude: "check_inputs_untouched",
    Double: "check_float32",
    Loose: "check_sparse",
    Baffled: "check_sparse",
    Unpicklable: "check_pickle_and_clone",
    Forgetful: "check_pickle_and_clone",
    Meddling: "check_pickle_and_clone",
    Permissive: "check_width",
    Misnamed: "check_feature_names",
    Stripped: "check_set_output",
    Impatient: "check_unfitted",
    Nosy: "check_learns_nothing_from_y",
    Leaking: "check_transform_learns_nothing",
    Unscaled: "check_gram_error",
}


def failures(plugin, **options):
    outcomes = list(run(components(plugin, **options), slow=False))
    return {each.check: each.message for each in outcomes if each.status == "failed"}


def map_plugin(plugin_of, make, **record):
    record = {"grid": {"gamma": (0.1, 1.0)}, "kernel": gaussian_gram, **record}
    return plugin_of(kbench_feature_maps=[FeatureMap("my-map", make=make, **record)])


def test_a_good_map_passes_everything(plugin_of):
    outcomes = list(run(components(map_plugin(plugin_of, Fourier))))
    assert {each.status for each in outcomes} == {"passed"}
    applied = {each.check for each in outcomes}
    # of those for maps, all but `measures`, which it does not declare
    wanted = {each.__name__ for each in CHECKS["feature map"]} - {"check_measures"}
    assert wanted <= applied


@pytest.mark.parametrize("make", MAP_DEFECTS, ids=lambda make: make.__name__)
def test_a_defect_of_a_map_is_caught_by_its_check(plugin_of, make):
    found = failures(map_plugin(plugin_of, make))
    assert list(found) == [MAP_DEFECTS[make]], found


def test_a_map_that_needs_y_must_say_so(plugin_of):
    # without y it cannot even be fitted, so every check meets the defect
    found = failures(map_plugin(plugin_of, Demanding))
    assert "supervised=True" in found["check_learns_nothing_from_y"]
    assert not failures(map_plugin(plugin_of, Demanding, supervised=True))


def test_a_declared_use_of_y_is_allowed(plugin_of):
    assert not failures(map_plugin(plugin_of, Nosy, supervised=True))


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"gama": (1.0,)}, "did you mean 'gamma'"),
        ({"gamma": ()}, "at least one value"),
        ({"gamma": "auto"}, "at least one value"),
        ({"gamma": (1.0, Ref("no-such-kernel"))}, "cannot be built"),
    ],
)
def test_a_wrong_grid_is_caught(plugin_of, grid, words):
    found = failures(map_plugin(plugin_of, Fourier, grid=grid))
    assert list(found) == ["check_grid"]
    assert words in found["check_grid"]


@pytest.mark.parametrize(
    "measures", [lambda fitted, X, y: {"a=b": 1.0}, lambda fitted, X, y: {"a": "much"}]
)
def test_wrong_measures_are_caught(plugin_of, measures):
    assert list(failures(map_plugin(plugin_of, Fourier, measures=measures))) == ["check_measures"]


def test_what_is_only_missing_is_a_warning(plugin_of):
    class Bare(BaseEstimator):
        """No names, no set_output, no state."""

        def fit(self, X, y=None):
            validate_data(self, X)
            return self

        def transform(self, X):
            if hasattr(self, "n_features_in_"):
                return validate_data(self, X, reset=False, dtype=np.float64) / 2
            return np.asarray(X)

    Bare.__module__ = __name__
    Bare.__qualname__ = "BaseEstimator"  # pickled by the name of something that exists
    checked = components(map_plugin(plugin_of, Bare, grid={}, kernel=None))[1]
    for name in ("check_feature_names", "check_set_output", "check_unfitted"):
        (check,) = (each for each in checks_of(checked) if each.__name__ == name)
        with pytest.warns(ConformanceWarning, match="my-map"):
            check(checked)


@pytest.mark.parametrize("requires", ["nonnegative", "unit_ball"])
def test_inputs_satisfy_what_the_map_requires(plugin_of, requires):
    class Strict(Fourier):
        def fit(self, X, y=None):
            self._look(X)
            return super().fit(X, y)

        def transform(self, X):
            self._look(X)
            return super().transform(X)

        def _look(self, X):
            X = np.asarray(X.toarray() if hasattr(X, "tocsr") else X, dtype=float)
            if requires == "nonnegative" and X.min() < 0:
                raise RuntimeError("negative input")
            if requires == "unit_ball" and (X**2).sum(axis=1).max() > 1:
                raise RuntimeError("outside of the unit ball")

    found = failures(map_plugin(plugin_of, Strict, requires=requires))
    assert not {name for name, message in found.items() if "RuntimeError" in message}


def test_scikit_learns_own_checks_run_and_name_what_failed(plugin_of):
    class Greedy(Fourier):
        def fit(self, X, y=None):
            self.n_components_ = len(self.get_params())
            self.gamma = float(self.gamma) + 1  # fit must not change a parameter
            return super().fit(X, y)

    plugin = map_plugin(plugin_of, Greedy, kernel=None)
    outcomes = {each.check: each for each in run(components(plugin))}
    assert outcomes["check_sklearn"].status == "failed"
    assert "check_dont_overwrite_attributes" in outcomes["check_sklearn"].message or (
        "check_dict_unchanged" in outcomes["check_sklearn"].message
        or "check_estimators_overwrite_params" in outcomes["check_sklearn"].message
    )


# ---------------------------------------------------------------------------
# Learners
# ---------------------------------------------------------------------------


class Centroids(ClassifierMixin, BaseEstimator):
    """The nearest class mean, without a defect."""

    def __init__(self, shrink=0.0, random_state=None):
        self.shrink = shrink
        self.random_state = random_state

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = unique_labels(y)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_[0]!r}")
        means = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        self.means_ = (1 - self.shrink) * means + self.shrink * means.mean(axis=0)
        return self

    def nearest(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return ((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)

    def predict(self, X):
        nearest = self.nearest(X)
        return self.classes_[nearest]

    def fit_path(self, X, y, values):
        return [type(self)(shrink=each).fit(X, y) for each in values]


class Positions(Centroids):
    def predict(self, X):
        return self.nearest(X)


class Majority(Centroids):
    def fit(self, X, y):
        super().fit(X, y)
        self.first_ = self.classes_[np.unique(y, return_counts=True)[1].argmax()]
        return self

    def predict(self, X):
        return np.full(len(self.nearest(X)), self.first_)


class Unclassed(Centroids):
    def fit(self, X, y):
        super().fit(X, y)
        self.labels_ = self.classes_
        self.classes_ = self.classes_[::-1]
        return self

    def predict(self, X):
        nearest = self.nearest(X)
        return self.labels_[nearest]


class Crashing(Centroids):
    def fit(self, X, y):
        if len(np.unique(y)) < 2:
            raise IndexError("index 1 is out of bounds")
        return super().fit(X, y)


class Inventive(Centroids):
    def fit(self, X, y):
        if len(np.unique(y)) < 2:
            y = np.arange(len(y)) % 2
        return super().fit(X, y)


class Backwards(Centroids):
    def fit_path(self, X, y, values):
        return super().fit_path(X, y, values)[::-1]


class Unpathed(Centroids):
    fit_path = None


class Scaling(Centroids):
    def predict(self, X):
        chosen = super().predict(X)
        if isinstance(X, np.ndarray):
            X /= 2
        return chosen


class Attached(Centroids):
    def fit(self, X, y):
        super().fit(X, y)
        self.distance_ = lambda x, z: abs(x - z)
        return self

    def __deepcopy__(self, memo):
        twin = type(self)(**self.get_params())
        twin.__dict__.update(vars(self))
        return twin


class Lenient(Centroids):
    def nearest(self, X):
        check_is_fitted(self)
        X = np.hstack([check_array(X), np.zeros((len(X), 9))])[:, : self.n_features_in_]
        return ((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)


class Hasty(Centroids):
    def predict(self, X):
        _ = self.means_  # AttributeError
        return super().predict(X)


LEARNER_DEFECTS = {
    Positions: "check_labels",
    Majority: "check_better_than_majority",
    Unclassed: "check_classes",
    Crashing: "check_one_class",
    Inventive: "check_one_class",
    Backwards: "check_path",
    Unpathed: "check_path",
    Scaling: "check_inputs_untouched",
    Attached: "check_pickle_and_clone",
    Lenient: "check_width",
    Hasty: "check_unfitted",
}


def learner_plugin(plugin_of, make, **record):
    record = {"grid": {"shrink": (0.0, 0.5)}, "path": "shrink", **record}
    return plugin_of(kbench_learners=[Learner("my-learner", make=make, **record)])


def test_a_good_learner_passes_everything(plugin_of):
    outcomes = list(run(components(learner_plugin(plugin_of, Centroids))))
    assert {each.status for each in outcomes} == {"passed"}


@pytest.mark.parametrize("make", LEARNER_DEFECTS, ids=lambda make: make.__name__)
def test_a_defect_of_a_learner_is_caught_by_its_check(plugin_of, make):
    found = failures(learner_plugin(plugin_of, make))
    assert list(found) == [LEARNER_DEFECTS[make]], found


def test_a_random_learner_is_caught(plugin_of):
    class Random(Centroids):
        def fit(self, X, y):
            super().fit(X, y)
            self.swap_ = np.random.permutation(40)[:3]  # noqa: NPY002
            return self

        def predict(self, X):
            chosen = self.nearest(X)
            chosen[self.swap_] = 0
            return self.classes_[chosen]

    found = failures(learner_plugin(plugin_of, Random, path=None))
    assert "check_determinism" in found


def test_a_kernelized_learner_without_a_kernel_is_caught(plugin_of):
    found = failures(learner_plugin(plugin_of, Centroids, kernelized=True))
    assert list(found) == ["check_kernelized"]


@pytest.mark.parametrize(
    ("simpler", "words"),
    [
        (lambda params: params["shrink"], "which is no mapping; say simpler={"),
        (["shrink"], "which is no mapping"),
        ({"shrunk": "larger"}, "'shrunk', which is no parameter; did you mean 'shrink'?"),
        ({"shrink": "bigger"}, "says 'bigger' of 'shrink'"),
    ],
)
def test_an_order_of_models_that_is_none_is_caught(plugin_of, simpler, words):
    found = failures(learner_plugin(plugin_of, Centroids, simpler=simpler))
    assert list(found) == ["check_simpler"]
    assert words in found["check_simpler"]


def test_values_without_an_order_are_caught(plugin_of):
    given = {"simpler": {"shrink": "larger"}, "path": None}
    found = failures(learner_plugin(plugin_of, Centroids, **given, grid={"shrink": (0.5, True)}))
    assert "its grid has True, which is no Python number" in found["check_simpler"]


@pytest.mark.parametrize(("direction", "right"), [("larger", True), ("smaller", False)])
def test_the_wrong_order_of_models_is_caught(plugin_of, direction, right):
    given = {"grid": {"shrink": (0.0, 1.0)}, "simpler": {"shrink": direction}, "path": None}
    found = failures(learner_plugin(plugin_of, Centroids, **given))
    assert list(found) == ([] if right else ["check_simpler"])
    assert right or "'shrink' make simpler models, but shrink=0.0 fits random" in str(found)


# ---------------------------------------------------------------------------
# Kernels
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Skew(Polynomial):
    def _gram(self, X, Y):
        Y = X if Y is None else Y
        return super()._gram(X, Y) + 0.01 * X[:, :1] ** 2

    diag = Kernel.diag


@dataclass(frozen=True)
class Distance(Kernel):
    def _gram(self, X, Y):
        Y = X if Y is None else Y
        return np.abs(X[:, None] - Y[None]).sum(axis=2)


@dataclass(frozen=True)
class WrongDiag(Polynomial):
    def diag(self, X):
        return np.ones(len(X))


class Batched:
    def __call__(self, X, Y):
        return np.asarray(X) @ np.asarray(Y).T * len(Y) * len(X)

    def diag(self, X):
        return np.diagonal(self(X, X))

    def __repr__(self):
        return "Batched()"


class Illegible(Polynomial):
    def __repr__(self):
        return "Polynomial(degree=7)"


class Narrow:
    def __call__(self, X, Y):
        return np.asarray(X) @ np.asarray(Y[:-1]).T if len(Y) == 7 else X @ Y.T

    def diag(self, X):
        return (X**2).sum(axis=1)

    def __repr__(self):
        return "Narrow()"


class Scribbling:
    def __call__(self, X, Y):
        K = np.array(X) @ np.array(Y).T
        X += 1
        return K

    def diag(self, X):
        return (X**2).sum(axis=1)

    def __repr__(self):
        return "Scribbling()"


KERNEL_DEFECTS = {
    Skew: "check_symmetry",
    Distance: "check_psd",
    WrongDiag: "check_diag",
    Batched: "check_chunks",
    Illegible: "check_repr",
    Narrow: "check_gram",
    Scribbling: "check_inputs_untouched",
}


def kernel_plugin(plugin_of, make, **record):
    return plugin_of(kbench_kernels=[KernelSpec("my-kernel", make=make, **record)])


def test_a_good_kernel_passes_everything(plugin_of):
    outcomes = list(run(components(kernel_plugin(plugin_of, Polynomial))))
    assert {each.status for each in outcomes} == {"passed"}
    assert len(outcomes) == 1 + len(CHECKS["kernel"])


@pytest.mark.parametrize("make", KERNEL_DEFECTS, ids=lambda make: make.__name__)
def test_a_defect_of_a_kernel_is_caught_by_its_check(plugin_of, make):
    found = failures(kernel_plugin(plugin_of, make))
    assert list(found) == [KERNEL_DEFECTS[make]], found


def test_a_kernel_that_is_declared_indefinite_may_be(plugin_of):
    assert not failures(kernel_plugin(plugin_of, Distance, psd=False))


# ---------------------------------------------------------------------------
# Datasets
# ---------------------------------------------------------------------------

X_SMALL = np.arange(12.0).reshape(6, 2)
Y_SMALL = np.array([0, 1, 0, 1, 0, 1])


def dataset(**changed):
    return Dataset("small", **{"X": X_SMALL, "y": Y_SMALL, **changed})


DATASET_DEFECTS = [
    (lambda: (X_SMALL, Y_SMALL), "check_is_dataset"),
    (lambda: dataset(y=Y_SMALL[:-2]), "check_shapes"),
    (lambda: dataset(feature_names=["one"]), "check_shapes"),
    (lambda: dataset(feature_kinds=["numeric", "colour"]), "check_shapes"),
    (lambda: dataset(X=np.where(X_SMALL > 10, np.inf, X_SMALL)), "check_finite"),
    (lambda: dataset(X=X_SMALL.astype(int)), "check_finite"),
    (lambda: dataset(y=Y_SMALL + 1), "check_labels"),
    (lambda: dataset(y=np.zeros(6, dtype=int)), "check_labels"),
    (lambda: dataset(y=Y_SMALL.astype(float)), "check_labels"),
    (lambda: dataset(X=np.random.default_rng().random((6, 2))), "check_checksum"),
]


@pytest.mark.parametrize(("load", "check"), DATASET_DEFECTS)
def test_a_defect_of_a_dataset_is_caught_by_its_check(plugin_of, load, check):
    found = failures(plugin_of(kbench_datasets=[DatasetSource("small", load=load)]))
    assert list(found) == [check], found


def test_missing_values_are_no_defect(plugin_of):
    def load():
        return dataset(X=np.where(X_SMALL > 10, np.nan, X_SMALL))

    assert not failures(plugin_of(kbench_datasets=[DatasetSource("small", load=load)]))


def test_a_wrong_expand_is_caught(plugin_of):
    source = DatasetSource("small", load=dataset, expand=lambda: ["a", "b"])
    assert list(failures(plugin_of(kbench_datasets=[source]))) == ["check_expand"]


def test_data_that_cannot_be_had_are_skipped(plugin_of):
    def load():
        raise DatasetError("the server is away")

    outcomes = list(run(components(plugin_of(kbench_datasets=[DatasetSource("far", load=load)]))))
    assert {each.status for each in outcomes[1:]} == {"skipped"}
    assert "the server is away" in outcomes[1].message


# ---------------------------------------------------------------------------
# Plugins
# ---------------------------------------------------------------------------


def test_a_plugin_that_is_left_out_is_one_failure(plugin_of):
    plugin = plugin_of(kbench_learners=[Learner("linear-svm", make=Centroids)])
    found = failures(plugin)
    assert list(found) == ["check_loads"]
    assert "rename one of them" in found["check_loads"]


def test_parameters_can_be_given(plugin_of):
    def load(path):
        return dataset(source=path)

    plugin = plugin_of(kbench_datasets=[DatasetSource("file", load=load)])
    skipped = [each for each in run(components(plugin)) if each.status == "skipped"]
    assert "params={'file': {'path': ...}}" in skipped[0].message
    given = run(components(plugin, params={"file": {"path": "here"}}))
    assert {each.status for each in given} == {"passed"}


def test_a_suite_with_a_mistake_is_caught(plugin_of, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('datasets = ["iris"]\nfeature_maps = ["rfff"]\nlearners = ["ridge"]\n')
    found = failures(plugin_of(kbench_suites=[path]))
    assert "did you mean 'rff'" in found["check_suite"]


def test_a_figure_that_nothing_draws_is_caught(plugin_of):
    figure = Figure("sketch", "A sketch", draw="collections:nothing_of_this_name")
    found = failures(plugin_of(kbench_figures=[figure]))
    assert list(found) == ["check_draw"]


def test_every_check_has_a_planted_defect():
    planted = {*MAP_DEFECTS.values(), *LEARNER_DEFECTS.values(), *KERNEL_DEFECTS.values()}
    planted |= {check for _, check in DATASET_DEFECTS}
    # those that have a test of their own above
    planted |= {"check_grid", "check_measures", "check_sklearn", "check_kernelized"}
    planted |= {"check_simpler"}
    planted |= {"check_expand", "check_loads", "check_suite", "check_draw"}
    assert {check.__name__ for checks in CHECKS.values() for check in checks} == planted


def test_plugins_are_found_by_entry_point_module_and_distribution():
    import kbench_datasets

    names = [
        [str(each) for each in components(each)]
        for each in ("datasets", "kbench_datasets", kbench_datasets)
    ]
    assert names[0] == names[1] == names[2]
    assert {"plugin datasets", "dataset iris"} <= set(names[0])
    assert len([each for each in components("kbench_core") if each.kind == "plugin"]) > 3


def test_an_unknown_plugin_is_one_message():
    with pytest.raises(PluginError, match="did you mean 'baselines'"):
        components("baseline")


def test_pytest_gets_one_case_per_component_and_check():
    mark = parametrize_with_checks("datasets").mark
    ids = [each.id for each in mark.args[1]]
    assert "dataset iris-check_checksum" in ids
    assert len(set(ids)) == len(ids)


def test_a_failure_says_what_to_do(plugin_of):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (Centred, Careless, Rude, Leaking):
            (message,) = failures(map_plugin(plugin_of, make)).values()
            assert ";" in message or "," in message
