"""Predictions are handed over before the labels of the test set are revealed.

The host keeps the labels of a split. A task gets row numbers and the labels of the training set,
hands over its predictions, and only then gets the labels of the test set, for the metrics of
plugins. What it changes afterwards has no effect: the host scores the predictions that it received.

Messages are named arrays, as bytes with their type and shape; nothing is unpickled.
"""

import contextlib
import json
import math
import socket
import struct
from collections.abc import Mapping, Sequence

import numpy as np

from kbench.evaluation.checked_predictions import Committed, Predictions
from kbench.evaluation.split_view import Assignment, Visible
from kbench.evaluation.splits import span
from kbench.evaluation.targets import Scale, Truth
from kbench.records import TaskType

_LENGTH = struct.Struct(">I")
_MAX_HEADER = 1 << 16
_KINDS = "iufU"
_ROWS = ("train", "test", "unlabeled", "y_train", "weight_train", "parts_train")
_INDICES = ("train", "test", "unlabeled")
_PREDICTIONS = ("predicted", "probabilities", "decision", "label_probabilities", "sd")
_SEED = "seed{}_"
"""Prefix of the predictions of later seeds of the map."""
_DEFAULT = "default_"
"""Prefix of the predictions of the default candidate."""
_ANY_SIZE = 1 << 62


class BrokenHandoverError(Exception):
    """The other side has gone, or sent what is not a message."""


class Handover:
    """The host's side: converses with one task at a time.

    A task may hand over predictions for `map_seeds` seeds of the map, or for one. `committed`
    is what it handed over; None if it has not.
    """

    def __init__(self, assignment: Assignment, map_seeds: int = 1) -> None:
        self._assignment, self._map_seeds = assignment, map_seeds
        self.committed: Committed | None = None

    def __call__(self, channel: socket.socket) -> None:
        """Give rows and training labels, take predictions, give the labels of the test set.

        The channel is closed then.
        """
        self.committed = None
        visible = self._assignment.visible
        n_test, k = len(visible.test), 0
        if self._assignment.task == "classification":
            k = len(np.unique(visible.y_train))
        # predictions, two tables of probabilities, decision values of classes or of pairs,
        # deviations; and all of that for the default candidate, and for each seed
        most = 16 * n_test * (2 + 2 * k + max(k, k * (k - 1) // 2)) * self._map_seeds + 1024
        # A task that has ended has an outcome, which says why; one that sends too much
        # must not wait for a reader.
        with channel, contextlib.suppress(OSError, BrokenHandoverError):
            send(channel, _compress(_present(visible, _ROWS)))
            taken = receive(channel, most)
            if not (chosen := self._take_seeds(taken)):
                return
            self.committed = Committed(chosen, self._take_seeds(taken, _DEFAULT))
            send(channel, {"y_test": self._assignment.y_test})

    def _take_seeds(
        self, taken: Mapping[str, np.ndarray], prefix: str = ""
    ) -> tuple[Predictions, ...]:
        """Return predictions for all seeds, or for the first only."""
        names = [prefix + _seed(number) for number in range(self._map_seeds)]
        present = [name for name in names if name + "predicted" in taken]
        if present not in ([], names[:1], names):
            raise BrokenHandoverError(f"there are {len(present)} seeds instead of {len(names)}")
        return tuple(_predictions(taken, name) for name in present)


def _seed(number: int) -> str:
    return _SEED.format(number) if number else ""


def receive_visible(channel: socket.socket, index: int) -> Visible:
    """Wait, in a task, for the rows and the training labels of its split."""
    parts = receive(channel, _ANY_SIZE)
    rows = {name: np.arange(*parts[f"{name}_span"]) for name in _INDICES if f"{name}_span" in parts}
    return Visible(index, **{name: parts[name] for name in _ROWS if name in parts}, **rows)


def _compress(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Replace consecutive row numbers, as those of ordered splits, by their first and end."""
    for name in _INDICES:
        if (pair := span(rows[name])) is not None:
            del rows[name]
            rows[f"{name}_span"] = np.array([pair.start, pair.stop])
    return rows


def hand_over(channel: socket.socket, committed: Committed) -> np.ndarray:
    """Send, in a task, the predictions; return the labels of the test set."""
    arrays = {
        prefix + _seed(number) + name: values
        for prefix, of_seeds in (("", committed.chosen), (_DEFAULT, committed.default))
        for number, predictions in enumerate(of_seeds)
        for name, values in _present(predictions, _PREDICTIONS).items()
    }
    send(channel, arrays)
    return receive(channel, _ANY_SIZE)["y_test"]


_TRUTH = ("y", "classes", "weight")


def send_scored(channel: socket.socket, truth: Truth, predictions: Predictions) -> None:
    """Send, on the host, what a metric is computed from; the channel is closed then."""
    with channel, contextlib.suppress(OSError, BrokenHandoverError):
        send(channel, _present(truth, _TRUTH) | _present(predictions, _PREDICTIONS))


def receive_scored(
    channel: socket.socket, task: TaskType, scale: Scale
) -> tuple[Truth, Predictions]:
    """Wait, in a sandboxed process, for what a metric is computed from."""
    arrays = receive(channel, _ANY_SIZE)
    truth = {name: arrays[name] for name in _TRUTH if name in arrays}
    return Truth(task=task, scale=scale, **truth), _predictions(arrays)


def _predictions(arrays: Mapping[str, np.ndarray], prefix: str = "") -> Predictions:
    fields = {name: arrays[prefix + name] for name in _PREDICTIONS if prefix + name in arrays}
    return Predictions(**fields)


def _present(record: Visible | Truth | Predictions, names: Sequence[str]) -> dict[str, np.ndarray]:
    arrays = {name: getattr(record, name) for name in names}
    return {name: values for name, values in arrays.items() if values is not None}


def send(channel: socket.socket, arrays: Mapping[str, np.ndarray]) -> None:
    """Send named arrays of numbers or text.

    Examples
    --------
    >>> ours, theirs = socket.socketpair()
    >>> send(ours, {"labels": np.array([0, 2, 1])})
    >>> receive(theirs, most_bytes=100)["labels"].tolist()
    [0, 2, 1]
    """
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in contiguous.items():
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"{name} has dtype {array.dtype}; numbers or text can be sent")
    header = json.dumps([[name, a.dtype.str, a.shape] for name, a in contiguous.items()]).encode()
    channel.sendall(_LENGTH.pack(len(header)) + header)
    for array in contiguous.values():
        if array.size:
            channel.sendall(array.reshape(-1).view(np.uint8).data)


def receive(channel: socket.socket, most_bytes: int) -> dict[str, np.ndarray]:
    """Wait for named arrays, of `most_bytes` together."""
    length = _LENGTH.unpack(_read(channel, _LENGTH.size))[0]
    if length > _MAX_HEADER:
        raise BrokenHandoverError("the message is not made of arrays")
    arrays = {}
    try:
        for name, type_, shape in json.loads(_read(channel, length)):
            dtype = np.dtype(str(type_))
            size = dtype.itemsize * math.prod(int(n) for n in shape)
            if dtype.kind not in _KINDS or not 0 <= size <= most_bytes or min(shape, default=0) < 0:
                raise BrokenHandoverError(f"{name} is of another type or size than is allowed")
            most_bytes -= size
            arrays[str(name)] = np.frombuffer(_read(channel, size), dtype).reshape(shape)
    except (ValueError, TypeError) as error:
        raise BrokenHandoverError(f"the message is not made of arrays: {error}") from None
    return arrays


def _read(channel: socket.socket, size: int) -> bytearray:
    buffer = bytearray(size)
    rest = memoryview(buffer)
    while rest:
        try:
            n = channel.recv_into(rest)
        except OSError as error:
            raise BrokenHandoverError(str(error)) from None
        if not n:
            raise BrokenHandoverError("the other side has closed the channel")
        rest = rest[n:]
    return buffer
