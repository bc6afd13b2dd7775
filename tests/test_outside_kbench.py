"""Every built-in estimator is a plain one of scikit-learn's: it works without kbench around it."""

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kbench.records import Ref
from kbench.registry.callables import makers, resolve
from kbench.registry.installed import HOST, list_plugins
from kbench.registry.registry import build

REGISTRY = build([each for each in list_plugins() if each.distribution == HOST])


@pytest.fixture(scope="module")
def data():
    """Two classes in the unit ball, without negative values: every map takes them."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.uniform(size=(60, 3)) * 0.25 + 0.3 * y[:, None]
    return pandas.DataFrame(X, columns=["a", "b", "c"]), np.array(["no", "yes"])[y]


def names_components(value):
    """Tell whether a value of a grid has components by name, which only kbench resolves."""
    return isinstance(value, Ref) or (
        isinstance(value, tuple) and any(map(names_components, value))
    )


def made(kind, name):
    """Return an estimator as its user makes it, and one parameter to search over."""
    record = REGISTRY.get(kind, name)
    plain = {
        parameter: list(values)[:2]
        for parameter, values in record.grid.items()
        if not any(names_components(value) for value in values)
    }
    (make, *_) = makers(record)
    estimator = resolve(make)(**nested(record))
    few = {"n_trees": 10, "rounds": 1}
    estimator.set_params(**{n: few[n] for n in few.keys() & estimator.get_params().keys()})
    return estimator, dict(list(plain.items())[:1])


def nested(record):
    """Return the maps that a map is around, which have no default."""
    return {
        parameter: made("feature map", values[0].name)[0]
        for parameter, values in record.grid.items()
        if parameter == "base_map"
    }


LEARNED = [name for name, each in REGISTRY.all("feature map").items() if "base_map" in each.grid]


def one_of(names, slow):
    """Return parameters of a fixture, of which some are slow."""
    return [pytest.param(n, marks=pytest.mark.slow) if n in slow else n for n in sorted(names)]


@pytest.fixture(params=one_of(REGISTRY.all("feature map"), {*LEARNED} - {"rff-learned"}))
def feature_map(request):
    return made("feature map", request.param)


CLASSIFIERS = [
    name for name, each in REGISTRY.all("learner").items() if "classification" in each.tasks
]


@pytest.fixture(params=one_of(CLASSIFIERS, {"random-forest"}))
def learner(request):
    return made("learner", request.param)


def test_a_map_works_in_a_searched_pipeline(feature_map, data):
    estimator, grid = feature_map
    X, y = data
    pipeline = make_pipeline(estimator, LogisticRegression())
    step = pipeline.steps[0][0]
    search = GridSearchCV(
        pipeline, {f"{step}__{name}": values for name, values in grid.items()}, cv=2
    )
    search.fit(X.to_numpy(), y)
    assert search.score(X.to_numpy(), y) > 0.6
    assert set(search.predict(X.to_numpy())) <= {"no", "yes"}


def test_a_map_works_on_some_columns(feature_map, data):
    estimator, _ = feature_map
    X, y = data
    columns = ColumnTransformer([("map", estimator, ["a", "b"])], remainder="passthrough")
    pipeline = make_pipeline(columns, LogisticRegression()).fit(X, y)
    assert pipeline.score(X, y) > 0.6


def test_a_map_gives_frames_where_asked(feature_map, data):
    estimator, _ = feature_map
    X, y = data
    estimator = clone(estimator).set_output(transform="pandas")
    try:
        frame = estimator.fit(X, y).transform(X)
    except ValueError as error:
        # scikit-learn's own words where the features are sparse
        assert "sparse" in str(error).lower()
        return
    assert isinstance(frame, pandas.DataFrame)
    assert frame.index.equals(X.index)
    assert list(frame.columns) == list(estimator.get_feature_names_out())
    plain = clone(estimator).set_output(transform="default").fit(X, y)
    assert frame.shape == plain.transform(X).shape


def test_a_learner_works_in_a_searched_pipeline(learner, data):
    from sklearn.preprocessing import MinMaxScaler

    estimator, grid = learner
    X, y = data
    pipeline = make_pipeline(MinMaxScaler(), estimator)
    step = pipeline.steps[-1][0]
    search = GridSearchCV(
        pipeline, {f"{step}__{name}": values for name, values in grid.items()}, cv=2
    )
    search.fit(X, y)
    assert set(search.predict(X)) <= {"no", "yes"}
    assert search.best_estimator_.classes_.tolist() == ["no", "yes"]
