"""A suite and its parts."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from kbench.records._components import ACCURACY, Metric

Value = TypeVar("Value")

# Steps of preprocessing.
Step = Literal["minmax", "standard", "unit_ball", "none"]


@dataclass(frozen=True)
class Tune:
    """Candidate values of a hyperparameter; inner cross-validation selects one."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Ref:
    """An entry of a suite file: a registered component with its parameters.

    Parameters
    ----------
    name : str
        Name of the component in the registry.
    params : mapping
        Parameter values: scalars, tuples, `Tune`, or a nested `Ref`, whose parameters may
        be a `Tune` too.
    label : str, optional
        Name in tables; the name with the given parameters by default.

    Examples
    --------
    >>> Ref("rff", {"n_components": 64, "gamma": Tune((0.1, 1.0))}).label
    'rff(n_components=64, gamma=tune[0.1, 1])'
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or write_value(self))


def write_value(value: object) -> str:
    """Write a parameter's value as labels show it.

    >>> write_value((0.5, True, Ref("gaussian", {"bandwidth": 2.0})))
    '[0.5, true, gaussian(bandwidth=2)]'
    """
    if isinstance(value, Ref):
        params = ", ".join(f"{key}={write_value(param)}" for key, param in value.params.items())
        return f"{value.name}({params})" if params else value.name
    if isinstance(value, Tune):
        return "tune[" + ", ".join(map(write_value, value.values)) + "]"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(write_value, value)) + "]"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def alternatives(value: object) -> tuple[Any, ...]:
    """Return the values, without a `Tune` in them, that a parameter's value stands for.

    Those of several searched parameters of a component are all combinations.

    >>> widths = Ref("gaussian", {"bandwidth_factor": Tune((1.0, 0.5))})
    >>> [write_value(kernel) for kernel in alternatives(Tune(("linear", widths)))]
    ['linear', 'gaussian(bandwidth_factor=1)', 'gaussian(bandwidth_factor=0.5)']
    """
    if isinstance(value, Tune):
        return tuple(itertools.chain.from_iterable(map(alternatives, value.values)))
    if isinstance(value, tuple | list):
        return tuple(itertools.product(*map(alternatives, value)))
    if not isinstance(value, Ref):
        return (value,)
    combinations = list(itertools.product(*map(alternatives, value.params.values())))
    if len(combinations) == 1 and combinations[0] == tuple(value.params.values()):
        return (value,)
    return tuple(
        Ref(value.name, dict(zip(value.params, chosen, strict=True))) for chosen in combinations
    )


@dataclass(frozen=True)
class Protocol:
    """Everything other than data and components that decides a number.

    All of it is part of a cell's key; `Limits` only bound the amount of work.

    Parameters
    ----------
    cv : {"stratified", "holdout", "ordered", "group_duplicates", "official"}
        Stratified K-fold (repeated beyond `n_folds` splits); repeated random
        holdout; one holdout in the order of the rows, the first for training
        and the last for testing; K-fold that keeps equal rows together; the
        dataset's official splits.
    n_folds : int, default 5
        Folds of "stratified" and "group_duplicates".
    train_size, test_size : float or int, optional
        Share (below 1.0) or number of rows of a holdout, "ordered" or not;
        `train_size` is all the rest by default.
    max_train_rows : int, optional
        Maximum number of training rows: a stratified sample of the training set; a larger
        sample contains a smaller one. The test set is that of all rows.
    unlabeled_size : float or int, default 0
        Share or number of the *training* rows set aside as unlabeled.
    target_scale : {"linear", "log"}, default "linear"
        Whether regressors are fitted on the targets or on their logarithms, of targets plus 1 if
        one is 0. Predictions are means in the target's units then, with Duan's smearing; searches
        score the logarithms.
    scaling : sequence of {"minmax", "standard", "unit_ball", "none"}
        One step, the same for every method, or several to search over.
    missing : {"error", "drop_rows", "impute", "impute_with_indicators"}
        Treatment of missing values, inside the split. "impute_with_indicators" imputes them
        and adds columns of 0 and 1 that say which were missing.
    inner_folds : int, default 3
        Folds of the inner cross-validation.
    inner_cv : {"random", "official"}
        Whether inner folds are drawn by seed, or made of the test sets of the other official
        splits; of one official split, or several by order, consecutive blocks of training rows.
    refit_maps_in_inner_folds : bool, default True
        Fit preprocessing and maps on the training rows of each inner fold. If false, they
        are fitted once on the training set, for all inner folds; maps that use the targets
        are then rejected.
    block_dtype : {"float64", "float32"}
        Type of blocks of embedded rows, for learners that are fitted from sums over blocks;
        the sums are float64. "float32" needs `refit_maps_in_inner_folds` false, and is used
        only if the penalties are large enough for it.
    search_method : {"grid", "random", "racing"}
        All combinations of the searched parameters; or at most `n_candidates`
        of them, drawn without replacement by seed; or a race of these: all on one
        inner fold, and the better half of them on each further one.
    n_candidates : int, default 12
        Maximum number of candidates of the random search, and of a race.
    one_standard_error : bool, default False
        Choose the simplest candidate within one standard error of the best, by
        the learner's `simpler`; else the best.
    search_metric : str, optional
        Metric that the search optimises, in its direction; by default the accuracy,
        and for regression the root mean squared error.
    threshold_metric : {"none", "f1_macro", "mcc"}, default "none"
        Metric that the decision threshold of two classes optimises, on out-of-fold scores of the
        training set. With fewer than 50 rows of a class it keeps the frequencies of the classes.
    search_timeout_s : float, optional
        Wall-clock seconds after which the search of a split takes the best so
        far, at least one. Accuracies then depend on the machine.
    calibration : {"none", "sigmoid", "isotonic"}, default "none"
        Probability calibration of classifiers without ``predict_proba``, fitted on
        out-of-fold decision values of the training set.
    map_seeds : int, default 1
        Seeds of the map with which the chosen candidate is fitted on each split. The scores of
        the split are means over them. A map without a seed is fitted once.
    threads : int, default 1
        BLAS and OpenMP threads of a task.
    device : {"cpu", "torch-cpu", "cuda"}
        Where embeddings are computed, and learners that are fitted from their blocks: by numpy on
        the host, or by torch, on the CPU or on a GPU.
    other_methods : {"host", "skip"}
        Whether methods that cannot compute on the device are computed on the host, or left out.
    gram_error_rows : int, default 1000
        Rows of the test set from which errors of the Gram matrix are computed.
    seed : int, default 0
        Root of every seed.
    """

    cv: Literal["stratified", "holdout", "ordered", "group_duplicates", "official"] = "stratified"
    n_folds: int = 5
    train_size: float | int | None = None
    test_size: float | int = 0.3
    max_train_rows: int | None = None
    unlabeled_size: float | int = 0
    target_scale: Literal["linear", "log"] = "linear"
    scaling: tuple[Step, ...] = ("minmax",)
    missing: Literal["error", "drop_rows", "impute", "impute_with_indicators"] = "error"
    inner_folds: int = 3
    inner_cv: Literal["random", "official"] = "random"
    refit_maps_in_inner_folds: bool = True
    block_dtype: Literal["float64", "float32"] = "float64"
    search_method: Literal["grid", "random", "racing"] = "grid"
    n_candidates: int = 12
    one_standard_error: bool = False
    search_metric: str | None = None
    threshold_metric: Literal["none", "f1_macro", "mcc"] = "none"
    search_timeout_s: float | None = None
    calibration: Literal["none", "sigmoid", "isotonic"] = "none"
    map_seeds: int = 1
    threads: int = 1
    device: Literal["cpu", "torch-cpu", "cuda"] = "cpu"
    other_methods: Literal["host", "skip"] = "host"
    gram_error_rows: int = 1000
    seed: int = 0

    @property
    def draws_candidates(self) -> bool:
        """Whether a search compares `n_candidates` at most."""
        return self.search_method in ("random", "racing")


_OF_A_SEARCH = (
    *("search_method", "n_candidates", "search_timeout_s", "inner_folds"),
    "refit_maps_in_inner_folds",
)


def divide_protocol(fields: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return the fields of a protocol that define the task, and those of the effort of a search.

    Results of one dataset are comparable if those of the task are equal. The effort belongs to
    the method: methods of one suite may differ in it, and `Suite.equal_budget` says in what they
    must agree.

    >>> divide_protocol({"cv": "stratified", "n_candidates": 12})
    ({'cv': 'stratified'}, {'n_candidates': 12})
    """
    effort = {name: value for name, value in fields.items() if name in _OF_A_SEARCH}
    return {name: value for name, value in fields.items() if name not in effort}, effort


@dataclass(frozen=True)
class Limits:
    """Limits of a run: its splits, and time and memory of a task; never part of a key.

    Parameters
    ----------
    n_splits : int, optional
        Splits to compute; all folds, or 10 holdouts, by default.
    task_timeout_s : float, default 300
        Wall-clock seconds of one task.
    task_memory_mib : float, default 4096
        MiB (2**20 bytes) that one task may use beyond its start, and on a GPU.
    """

    n_splits: int | None = None
    task_timeout_s: float = 300.0
    task_memory_mib: float = 4096.0


@dataclass(frozen=True)
class Published:
    """A result that a paper reports for a cell.

    Parameters
    ----------
    dataset, feature_map, learner : str
        Labels of the cell.
    metric : str
        Which metric, such as ``"accuracy"``.
    value : float
        The value.
    sd : float, optional
        Standard deviation of one run, where the paper gives it.
    n_runs : int, optional
        Number of runs behind the value.
    source : str
        Paper and table.
    """

    dataset: str
    feature_map: str
    learner: str
    metric: str
    value: float
    sd: float | None = None
    n_runs: int | None = None
    source: str = ""


@dataclass(frozen=True)
class Block:
    """One product of datasets, feature maps and learners under one protocol.

    `dataset_protocols` has those of datasets that have their own, by label.
    """

    datasets: tuple[Ref, ...]
    feature_maps: tuple[Ref, ...]
    learners: tuple[Ref, ...]
    protocol: Protocol
    dataset_protocols: Mapping[str, Protocol] = field(default_factory=dict)

    def protocol_of(self, dataset: Ref) -> Protocol:
        """Return the protocol under which the block runs on a dataset."""
        return self.dataset_protocols.get(dataset.label, self.protocol)


@dataclass(frozen=True)
class Suite:
    """A named set of blocks, with limits, published results and the metric to compare.

    `published_file` is a CSV file of published results next to the suite file.
    Without a metric, the task of the datasets decides it. `data_source_hint` says where
    to get the files that its datasets name, for a message. `equal_budget` says in which respect
    methods are compared at equal budgets: "candidates" within each family, or "seconds" of the
    search across families too; empty if the suite declares neither.
    """

    name: str
    blocks: tuple[Block, ...]
    limits: Limits = Limits()
    published: tuple[Published, ...] = ()
    published_file: str = ""
    metric: Metric | None = None
    data_source_hint: str = ""
    equal_budget: Literal["", "candidates", "seconds"] = ""

    @property
    def compared(self) -> Metric:
        """The metric to compare; accuracy while the task is unknown."""
        return self.metric or ACCURACY

    @property
    def protocols(self) -> tuple[Protocol, ...]:
        """The protocols of all blocks and of datasets that have their own, each once."""
        every = [[block.protocol, *block.dataset_protocols.values()] for block in self.blocks]
        return tuple(dict.fromkeys(itertools.chain(*every)))

    @property
    def repeats_folds(self) -> bool:
        """Whether there are more splits than folds, of a protocol that has folds."""
        n_splits, of_folds = self.limits.n_splits or 0, ("stratified", "group_duplicates")
        return any(n_splits > each.n_folds for each in self.protocols if each.cv in of_folds)

    @property
    def datasets(self) -> tuple[Ref, ...]:
        """The datasets of all blocks, each label once."""
        return tuple({ref.label: ref for block in self.blocks for ref in block.datasets}.values())
