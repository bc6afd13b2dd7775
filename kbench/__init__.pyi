"""The public names of kbench with their homes."""

from typing import Any

from kbench._version import __version__ as __version__
from kbench.api.functions import evaluate as evaluate
from kbench.api.functions import load_results as load_results
from kbench.api.functions import run_suite as run_suite
from kbench.api.result_set import Results as Results
from kbench.errors import BundleError as BundleError
from kbench.errors import ClusterError as ClusterError
from kbench.errors import DatasetError as DatasetError
from kbench.errors import DatasetParameterError as DatasetParameterError
from kbench.errors import ExportError as ExportError
from kbench.errors import FeatureError as FeatureError
from kbench.errors import JournalError as JournalError
from kbench.errors import KbenchError as KbenchError
from kbench.errors import PluginError as PluginError
from kbench.errors import SourceUnreachableError as SourceUnreachableError
from kbench.errors import StoreError as StoreError
from kbench.errors import SuiteError as SuiteError
from kbench.hookspecs import hookimpl as hookimpl
from kbench.records import BANDWIDTH_FACTORS as BANDWIDTH_FACTORS
from kbench.records import Block as Block
from kbench.records import Cell as Cell
from kbench.records import Dataset as Dataset
from kbench.records import DatasetSource as DatasetSource
from kbench.records import FeatureMap as FeatureMap
from kbench.records import Figure as Figure
from kbench.records import KernelSpec as KernelSpec
from kbench.records import Learner as Learner
from kbench.records import Limits as Limits
from kbench.records import Metric as Metric
from kbench.records import Protocol as Protocol
from kbench.records import Published as Published
from kbench.records import Ref as Ref
from kbench.records import Result as Result
from kbench.records import Split as Split
from kbench.records import Suite as Suite
from kbench.records import Task as Task
from kbench.records import Tune as Tune

def _homes(package: str) -> dict[str, tuple[str, str]]: ...
def __getattr__(name: str) -> Any: ...
