"""ONNX models of linear and Fourier pipelines: numbers in, classes or numbers out.

The input is the encoded table, float64 with NaN for missing values. The graph imputes,
scales, takes the cosines of Fourier features, and multiplies by the coefficients.
"""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logit

from kbench.errors import ExportError
from kbench.features import Imputer, how_to_get
from kbench.messages import option
from kbench_tables.export.fit import Fitted
from kbench_tables.export.model import Facts

# Maximum difference between ONNX and original predictions, relative to their range.
TOLERANCE = 1e-5

WHICH = (
    "ONNX export supports methods whose map is `identity` or random Fourier features (rff, "
    "orthogonal-rff, qmc-rff, laplace-rff, matern-rff), with a learner that has coefficients, "
    "on dense data"
)
OPSET, IR_VERSION = 18, 9


def check_onnx() -> None:
    """Raise ExportError if the packages for ONNX are not installed, before anything is fitted."""
    for name in ("onnx", "onnxruntime"):
        try:
            __import__(name)
        except ImportError as error:
            message = f"{option('onnx', True)} needs the package {name!r}{how_to_get(name)}"
            raise ExportError(message) from error


def write_onnx(path: Path, fitted: Fitted) -> Facts:
    """Write a pipeline as an ONNX model, and compare its predictions on the training rows.

    Returns the names of inputs and outputs, and the largest difference. ExportError is raised for
    unsupported pipelines, and if the predictions differ.
    """
    import onnx
    import onnxruntime

    steps = fitted.pipeline.named_steps
    if hasattr(fitted.dataset.X, "indptr"):
        raise ExportError(f"{WHICH}; this data is sparse")
    graph = _Graph(fitted.dataset.X.shape[1])
    value = graph.add_preprocessing("X", steps["prepare"])
    value = graph.add_map(value, steps["feature_map"])
    outputs = graph.add_learner(value, steps["learner"])
    X = np.asarray(fitted.dataset.X, dtype=np.float64)
    model = graph.model(outputs)
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise ExportError(f"the ONNX model is not valid: {error}") from error
    content = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [name for name, _, _ in outputs]
    difference = _difference(fitted, dict(zip(names, session.run(names, {"X": X}), strict=True)))
    path.write_bytes(content)
    return {"input": "X", "outputs": names, "difference": difference}


def _difference(fitted: Fitted, outputs: dict[str, np.ndarray]) -> float:
    steps = fitted.pipeline[-3:]
    if "label" in outputs:
        labels = np.asarray(steps.predict(fitted.dataset.X))
        if not np.array_equal(outputs["label"].astype(str), labels.astype(str)):
            raise ExportError("the ONNX model predicts different classes on the training rows")
    method = "predict" if fitted.dataset.task == "regression" else "decision_function"
    expected = np.asarray(getattr(steps, method)(fitted.dataset.X), dtype=np.float64)
    output = outputs["prediction" if method == "predict" else "decision"]
    output = output.reshape(expected.shape)
    difference = float(np.abs(output - expected).max()) / max(float(np.ptp(expected)), 1e-300)
    if "probabilities" in outputs:
        shares = np.asarray(steps.predict_proba(fitted.dataset.X))
        difference = max(difference, float(np.abs(outputs["probabilities"] - shares).max()))
    if not difference <= TOLERANCE:
        raise ExportError(
            f"the ONNX model differs by {difference:.2g} of the range of predictions, more than "
            f"{TOLERANCE:g}"
        )
    return difference


class _Graph:
    """Nodes and constants of an ONNX graph."""

    def __init__(self, n_features: int) -> None:
        import onnx

        self._onnx, self._n_features = onnx, n_features
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node; inputs are names of values, or arrays. Return the name of its output."""
        name = f"v{len(self._nodes)}"
        names = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        self._nodes.append(self._onnx.helper.make_node(kind, names, [name], **attributes))
        return name

    def _constant(self, array: Any) -> str:
        name = f"c{len(self._constants)}"
        array = np.ascontiguousarray(array)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add_preprocessing(self, value: str, steps: Any) -> str:
        """Add the protocol's preprocessing."""
        if steps._categories is not None:
            value = self._with_means(value, steps._categories)
        for step in steps._steps:
            value = self._add_step(value, step)
        return value

    def _with_means(self, value: str, means: Any) -> str:
        """Replace columns of numbers of categories by means of the target, at the end."""
        plain = [j for j in range(self._n_features) if j not in means.columns]
        parts = []
        if plain:
            parts.append(self.add("Gather", value, np.array(plain, np.int64), axis=1))
        codes = [self.add("Gather", value, np.array([j], np.int64), axis=1) for j in means.columns]
        for encoder in means._encoders:
            for column, code in enumerate(codes):
                categories = np.asarray(encoder.categories_[column], dtype=np.float64)
                encodings = np.asarray(encoder.encodings_[column], dtype=np.float64)
                is_code = ~np.isnan(categories)
                n_codes = int(categories[is_code].max(initial=-1)) + 1
                # after the codes: missing, and new
                table = np.full(n_codes + 2, float(encoder.target_mean_))
                table[categories[is_code].astype(np.int64)] = encodings[is_code]
                table[n_codes] = encodings[~is_code][0] if (~is_code).any() else table[-1]
                is_new = self.add("Less", code, np.float64(0))
                place = self.add("Where", is_new, np.float64(n_codes + 1), code)
                is_late = self.add("GreaterOrEqual", place, np.float64(n_codes))
                place = self.add("Where", is_late, np.float64(n_codes + 1), place)
                place = self.add("Where", self.add("IsNaN", code), np.float64(n_codes), place)
                parts.append(self.add("Gather", table, self.add("Cast", place, to=7), axis=0))
        return self.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]

    def _add_step(self, value: str, step: Any) -> str:
        kind = type(step).__name__
        if isinstance(step, Imputer):
            is_missing = self.add("IsNaN", value)
            imputed = self.add("Where", is_missing, step.values_.astype(np.float64), value)
            if not len(step._indicated):
                return imputed
            columns = self.add("Gather", is_missing, step._indicated.astype(np.int64), axis=1)
            return self.add("Concat", imputed, self.add("Cast", columns, to=11), axis=1)
        if kind == "MinMaxScaler":
            scaled = self.add("Add", self.add("Mul", value, step.scale_), step.min_)
            if not step.clip:
                return scaled
            return self.add("Clip", scaled, *map(np.float64, step.feature_range))
        if kind == "StandardScaler":
            return self.add("Div", self.add("Sub", value, step.mean_), step.scale_)
        if kind == "UnitBall":
            squares = self.add("Mul", value, value)
            sums = self.add("ReduceSum", squares, np.array([1], np.int64), keepdims=1)
            norms = self.add("Div", self.add("Sqrt", sums), np.float64(step.scale_))
            longer = self.add("Max", norms, np.float64(1.0))
            return self.add("Div", value, self.add("Mul", longer, np.float64(step.scale_)))
        raise ExportError(f"{WHICH}; not of one with {kind}")

    def add_map(self, value: str, feature_map: Any) -> str:
        """Add the feature map: none, or cosines of random frequencies."""
        kind = type(feature_map).__name__
        if kind == "Identity":
            return value
        frequencies = _frequencies(feature_map)
        if frequencies is None:
            raise ExportError(f"{WHICH}; this map is {kind}")
        weights, phases = frequencies
        angles = self.add("Add", self.add("MatMul", value, weights), phases)
        return self.add("Mul", self.add("Cos", angles), np.float64(np.sqrt(2 / len(phases))))

    def add_learner(self, value: str, learner: Any) -> list[tuple[str, Any, Any]]:
        """Add the learner; return the names, types and shapes of the outputs."""
        fitted, double = learner.estimator_, self._onnx.TensorProto.DOUBLE
        coefficients = getattr(fitted, "coef_", None)
        if coefficients is None or not hasattr(fitted, "intercept_"):
            raise ExportError(f"{WHICH}; the learner is {type(fitted).__name__}")
        weights = np.atleast_2d(np.asarray(coefficients, dtype=np.float64)).T
        shift = np.atleast_1d(np.asarray(fitted.intercept_, dtype=np.float64))
        margins = self.add("Add", self.add("MatMul", value, weights), shift)
        if not hasattr(learner, "names"):
            scaled = self.add("Mul", margins, np.float64(learner.sd_))
            number = self.add("Add", scaled, np.float64(learner.mean_))
            if (log := learner.log_) is not None:
                number = self.add("Exp", self.add("Min", number, np.float64(log.highest)))
                number = self.add("Mul", number, np.float64(log.smearing))
                number = self.add("Sub", number, np.float64(log.shift))
                number = self.add("Max", number, np.float64(0))
            flat = self.add("Reshape", number, np.array([-1], np.int64))
            return [(self._add_output(flat, "prediction"), double, ("rows",))]
        names = learner.classes_
        if len(names) == 2:
            bound = learner.threshold_ or 0.0
            if learner.threshold_ is not None and hasattr(fitted, "predict_proba"):
                shares = fitted._shares if getattr(fitted, "balanced", False) else np.ones(2)
                bound = logit(np.clip(bound, 5e-324, 1 - 2**-53)) - np.log(shares[1] / shares[0])
            above = self.add("Sub", margins, np.float64(bound))
            scores = self.add("Concat", self.add("Neg", above), above, axis=1)
            decision = self.add("Reshape", margins, np.array([-1], np.int64))
        else:
            scores = decision = self._scores(margins, len(names), weights.shape[1], fitted)
        places = self.add("ArgMax", scores, axis=1, keepdims=0, select_last_index=len(names) == 2)
        is_text = names.dtype.kind not in "iu"
        labels = names.astype(str).astype(object) if is_text else names.astype(np.int64)
        label = self.add("Gather", labels, places, axis=0)
        kind = self._onnx.TensorProto.STRING if is_text else self._onnx.TensorProto.INT64
        shape = ("rows",) if len(names) == 2 else ("rows", len(names))
        outputs = [
            (self._add_output(label, "label"), kind, ("rows",)),
            (self._add_output(decision, "decision"), double, shape),
        ]
        probabilities = self._probabilities(decision, learner)
        if probabilities is not None:
            named = self._add_output(probabilities, "probabilities")
            outputs.append((named, double, ("rows", len(names))))
        return outputs

    def _probabilities(self, decision: str, learner: Any) -> str | None:
        column = self.add("Reshape", decision, np.array([-1, 1], np.int64))
        is_two = len(learner.classes_) == 2
        margins = column if is_two else decision
        if learner.calibration_ is not None:
            several = [
                self._calibrate(margins, each.calibrators)
                for each in learner.calibration_.calibrated_classifiers_
            ]
            total = several[0]
            for each in several[1:]:
                total = self.add("Add", total, each)
            return self.add("Div", total, np.float64(len(several)))
        if type(learner.estimator_).__name__ != "LogisticClassifier":
            return None
        if is_two:
            value = self._two_shares(self._sigmoid(self.add("Neg", margins)))
        elif learner.estimator_.multiclass == "multinomial":
            value = self.add("Softmax", margins, axis=1)
        else:
            value = self._shares(self._sigmoid(self.add("Neg", margins)))
        if not learner.estimator_.balanced:
            return value
        return self._shares(self.add("Mul", value, learner.estimator_._shares[None, :]))

    def _calibrate(self, margins: str, calibrators: Any) -> str:
        slopes, shifts = (
            np.array([[getattr(each, name) for each in calibrators]], dtype=np.float64)
            for name in ("a_", "b_")
        )
        second = self._sigmoid(self.add("Add", self.add("Mul", margins, slopes), shifts))
        return self._two_shares(second) if len(calibrators) == 1 else self._shares(second)

    def _sigmoid(self, value: str) -> str:
        """Add 1 / (1 + exp(value))."""
        return self.add("Reciprocal", self.add("Add", np.float64(1), self.add("Exp", value)))

    def _two_shares(self, second: str) -> str:
        return self.add("Concat", self.add("Sub", np.float64(1), second), second, axis=1)

    def _shares(self, values: str) -> str:
        total = self.add("ReduceSum", values, np.array([1], np.int64), keepdims=1)
        return self.add("Div", values, total)

    def _scores(self, margins: str, n_classes: int, n_problems: int, learner: Any) -> str:
        """Add the scores of more than two classes: the margins, or votes of pairs."""
        if getattr(learner, "multiclass", "ovr") != "ovo":
            return margins
        pairs = list(combinations(range(n_classes), 2))
        if len(pairs) != n_problems:
            raise ExportError(WHICH)
        first, second = np.zeros((2, n_problems, n_classes))
        for problem, (i, j) in enumerate(pairs):
            first[problem, i] = second[problem, j] = 1.0
        wins = self.add("Cast", self.add("GreaterOrEqual", margins, np.float64(0)), to=11)
        losses = self.add("Sub", np.float64(1), wins)
        votes = self.add("Add", self.add("MatMul", wins, first), self.add("MatMul", losses, second))
        sums = self.add("MatMul", margins, first - second)
        bound = self.add(
            "Mul", self.add("Add", self.add("Abs", sums), np.float64(1)), np.float64(3)
        )
        return self.add("Add", votes, self.add("Div", sums, bound))

    def _add_output(self, value: str, name: str) -> str:
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        return name

    def model(self, outputs: list[tuple[str, Any, Any]]) -> Any:
        """Return the model of a graph whose input is ``X``."""
        tensor = self._onnx.helper.make_tensor_value_info
        graph = self._onnx.helper.make_graph(
            self._nodes,
            "model",
            [tensor("X", self._onnx.TensorProto.DOUBLE, ("rows", self._n_features))],
            [tensor(name, kind, shape) for name, kind, shape in outputs],
            self._constants,
        )
        opsets = [self._onnx.helper.make_opsetid("", OPSET)]
        return self._onnx.helper.make_model(
            graph, producer_name="kbench", opset_imports=opsets, ir_version=IR_VERSION
        )


def _frequencies(feature_map: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return frequencies and phases whose cosines are the features; None for other maps."""
    if sampler := getattr(feature_map, "sampler_", None):  # scikit-learn's RBFSampler
        weights = getattr(sampler, "random_weights_", None)
        if weights is None:
            return None
        return np.asarray(weights, np.float64), np.asarray(sampler.random_offset_, np.float64)
    frequencies, offset = (
        getattr(feature_map, "frequencies_", None),
        getattr(feature_map, "offset_", None),
    )
    if frequencies is None or offset is None:
        return None
    n_components, half = feature_map.n_components, feature_map.n_components // 2
    weights = np.asarray(frequencies, dtype=np.float64)
    pairs = np.hstack([weights[:, :half], weights[:, :half], weights[:, half:]])
    # the sine is a cosine a quarter behind; an odd component has a phase of its own
    return pairs, np.repeat([0.0, -np.pi / 2, float(offset)], [half, half, n_components % 2])
