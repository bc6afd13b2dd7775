"""The records that plugins give to kbench and that its parts pass to each other.

All of them are frozen. Importing this package does not even import numpy, so
that a plugin's ``__init__`` costs nothing; heavy objects are named as
``"module:name"`` and resolved on first use.
"""

from kbench.records._components import (
    ACCURACY,
    BANDWIDTH_FACTORS,
    BASELINE,
    DEFAULT,
    INPUTS,
    KERNEL,
    RESERVED,
    TASK_TYPES,
    DatasetSource,
    FeatureMap,
    Figure,
    KernelSpec,
    Learner,
    Make,
    Metric,
    Needs,
    TaskType,
    get_family,
)
from kbench.records._data import (
    FEATURE_KINDS,
    Dataset,
    DatasetFacts,
    Inputs,
    Split,
    content_checksum,
)
from kbench.records._manifest import INSTALLED, NAMESPACE, Manifest
from kbench.records._results import (
    STOPPING,
    WORST_FIRST,
    Added,
    Cell,
    Cost,
    Delivered,
    Details,
    Estimate,
    Missing,
    Mistake,
    Problem,
    Result,
    Status,
    Task,
    Trial,
)
from kbench.records._suite import (
    Block,
    Limits,
    Protocol,
    Published,
    Ref,
    Step,
    Suite,
    Tune,
    alternatives,
    divide_protocol,
    write_value,
)
