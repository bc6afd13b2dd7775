"""Errors that users may see, each with one clear message and no traceback.

::

    KbenchError              something the user can correct; exit code 2
    ├── SuiteError           invalid suite file, component name, option or filter
    ├── JournalError         the journal cannot be written; exit code 1
    ├── LeftOutError         the protocol leaves out methods of this kind
    ├── DatasetError         the data are unavailable or invalid
    │   ├── SourceUnreachableError   the server of a source does not answer
    │   └── DatasetParameterError   invalid parameter of a dataset
    ├── PluginError          a plugin violates the contract of its hook
    ├── FeatureError         a feature cannot be used, or two features conflict
    ├── ClusterError         a Dask cluster is unreachable, or its workers differ
    ├── BundleError          a bundle of results is damaged, forged or cannot be written
    ├── ExportError          a model cannot be saved, or predicts differently once loaded
    └── StoreError           the MLflow store cannot be opened, read or written
"""


class KbenchError(Exception):
    """Base class of all errors that the command line shows as one message."""


class _ProblemsError(KbenchError):
    """One line per problem: the place, the value, the allowed values."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class SuiteError(_ProblemsError):
    """Invalid suite file, component name, option or filter; `problems` has a line for each."""


class LeftOutError(KbenchError):
    """The protocol leaves out methods of this kind."""


class DatasetError(KbenchError):
    """The data are unavailable or invalid; the message names dataset, cause and remedy."""


class SourceUnreachableError(DatasetError):
    """The server of a source does not answer, so that further requests would fail too."""


class DatasetParameterError(DatasetError, ValueError):
    """Invalid parameter of a dataset in a suite, such as a column that does not exist."""


class PluginError(KbenchError):
    """A plugin violates the contract of its hook."""


class FeatureError(_ProblemsError):
    """A feature cannot be used, or two features implement a hook that only one may."""


class ClusterError(KbenchError):
    """A Dask cluster is unreachable, or its workers would compute different results."""


class BundleError(KbenchError):
    """A bundle of results is damaged, forged or cannot be written."""


class ExportError(KbenchError):
    """A model cannot be saved, or predicts differently once it is loaded."""


class StoreError(KbenchError):
    """The MLflow store cannot be opened, read or written."""


class JournalError(KbenchError):
    """The journal cannot be written, so that results would be lost."""
