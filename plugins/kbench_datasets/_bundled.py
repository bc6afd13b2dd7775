"""The real datasets that scikit-learn ships.

They are not stand-ins for the datasets of the same name at OpenML:
iris differs from OpenML 61 in rows 34 and 37, wdbc from 1510 in five rows and
in the coding of the labels, digits is only the test set of optdigits (28), and
diabetes has nothing in common with 37. Only wine equals its counterpart (187) value by value.
"""

import numpy as np
from sklearn import datasets

from kbench import Dataset


def load_iris() -> Dataset:
    """Three species of iris by the sizes of petals and sepals: 150 rows, 4 columns.

    Source: R. A. Fisher, "The use of multiple measurements in taxonomic
    problems", Annals of Eugenics 7 (1936).

    Returns
    -------
    Dataset
        Group "iris", a development set.

    Examples
    --------
    >>> load_iris().target_names
    ('setosa', 'versicolor', 'virginica')
    """
    return _from_bunch("iris", datasets.load_iris(), role="development")


def load_iris_setosa() -> Dataset:
    """Iris setosa against the other two species: 150 rows, 4 columns.

    Returns
    -------
    Dataset
        Label 1 is setosa; group "iris".
    """
    return _one_against_rest("setosa")


def load_iris_versicolor() -> Dataset:
    """Iris versicolor against the other two species: 150 rows, 4 columns.

    Returns
    -------
    Dataset
        Label 1 is versicolor; group "iris".
    """
    return _one_against_rest("versicolor")


def load_iris_virginica() -> Dataset:
    """Iris virginica against the other two species: 150 rows, 4 columns.

    Returns
    -------
    Dataset
        Label 1 is virginica; group "iris".
    """
    return _one_against_rest("virginica")


def load_wine() -> Dataset:
    """Three cultivars of wine by chemical analysis: 178 rows, 13 columns.

    Source: UCI Machine Learning Repository, Forina et al. (1991).

    Returns
    -------
    Dataset
        Equal to OpenML 187, value by value.
    """
    return _from_bunch("wine", datasets.load_wine())


def load_wdbc() -> Dataset:
    """Malignant and benign tumours of the breast by images of cells: 569 rows, 30 columns.

    Source: UCI Machine Learning Repository, Wolberg, Street and Mangasarian
    (1995), "Breast Cancer Wisconsin (Diagnostic)".

    Returns
    -------
    Dataset
        Group "wdbc".
    """
    return _from_bunch("wdbc", datasets.load_breast_cancer())


def load_digits() -> Dataset:
    """Handwritten digits as 8 x 8 images of values 0 to 16: 1,797 rows, 64 columns.

    Source: UCI Machine Learning Repository, Alpaydin and Kaynak (1998): the
    test set of "Optical Recognition of Handwritten Digits".

    Returns
    -------
    Dataset
        Group "digits", which OpenML's optdigits (28) belongs to as well.
    """
    return _from_bunch("digits", datasets.load_digits())


def load_diabetes() -> Dataset:
    """Progression of diabetes a year after ten baseline measurements: 442 rows, 10 columns.

    A regression task: the target is an integer from 25 to 346. The columns are in their
    own units; scikit-learn's default, which scales them by all rows, is not used.

    Source: B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, "Least angle
    regression", Annals of Statistics 32 (2004).

    Returns
    -------
    Dataset
        Not OpenML 37, which is also called diabetes and is a classification task.

    Examples
    --------
    >>> data = load_diabetes()
    >>> data.task, data.X.shape
    ('regression', (442, 10))
    """
    bunch = datasets.load_diabetes(scaled=False)
    return Dataset(
        name="diabetes",
        X=np.ascontiguousarray(bunch.data, dtype=np.float64),
        y=bunch.target.astype(np.float64),
        feature_names=[str(column) for column in bunch.feature_names],
        source="bundled with scikit-learn",
        dataset_family="diabetes-progression",
        task="regression",
    )


def _from_bunch(name, bunch, role="evaluation") -> Dataset:
    return Dataset(
        name=name,
        X=np.ascontiguousarray(bunch.data, dtype=np.float64),
        y=bunch.target.astype(np.int64),
        feature_names=[str(column) for column in bunch.feature_names],
        target_names=[str(label) for label in bunch.target_names],
        source="bundled with scikit-learn",
        role=role,
    )


def _one_against_rest(species: str) -> Dataset:
    iris = load_iris()
    return Dataset(
        name=f"iris-{species}",
        X=iris.X,
        y=(iris.y == iris.target_names.index(species)).astype(np.int64),
        feature_names=iris.feature_names,
        target_names=("rest", species),
        source=iris.source,
        dataset_family="iris",
        role="development",
    )
