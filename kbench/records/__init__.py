"""The records that plugins give to kbench and that its parts pass to each other.

All of them are frozen. Importing this package does not even import numpy, so
that a plugin's ``__init__`` costs nothing; heavy objects are named as
``"module:name"`` and resolved on first use.
"""

from kbench.records._components import (
    BANDWIDTH_FACTORS,
    BASELINE,
    INPUTS,
    KERNEL,
    TASK_TYPES,
    DatasetSource,
    FeatureMap,
    Figure,
    KernelSpec,
    Learner,
    Make,
    TaskType,
    family_of,
)
from kbench.records._costs import Cost, Estimate, Trial
from kbench.records._data import (
    FEATURE_KINDS,
    Dataset,
    DatasetFacts,
    Inputs,
    Split,
    content_checksum,
)
from kbench.records._measures import ACCURACY, DEFAULT, RESERVED, Measure, Needs
from kbench.records._outcomes import Added, Delivered, Missing
from kbench.records._results import (
    STOPPING,
    WORST_FIRST,
    Cell,
    Details,
    Mistake,
    Problem,
    Result,
    Task,
)
from kbench.records._status import Status
from kbench.records._suite import (
    Block,
    Limits,
    Protocol,
    Published,
    Ref,
    Search,
    Suite,
    alternatives,
    written,
)

__all__ = [
    "ACCURACY",
    "BANDWIDTH_FACTORS",
    "BASELINE",
    "DEFAULT",
    "FEATURE_KINDS",
    "INPUTS",
    "KERNEL",
    "RESERVED",
    "STOPPING",
    "TASK_TYPES",
    "WORST_FIRST",
    "Added",
    "Block",
    "Cell",
    "Cost",
    "Dataset",
    "DatasetFacts",
    "DatasetSource",
    "Delivered",
    "Details",
    "Estimate",
    "FeatureMap",
    "Figure",
    "Inputs",
    "KernelSpec",
    "Learner",
    "Limits",
    "Make",
    "Measure",
    "Missing",
    "Mistake",
    "Needs",
    "Problem",
    "Protocol",
    "Published",
    "Ref",
    "Result",
    "Search",
    "Split",
    "Status",
    "Suite",
    "Task",
    "TaskType",
    "Trial",
    "alternatives",
    "content_checksum",
    "family_of",
    "written",
]
