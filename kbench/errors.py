"""Errors that users may see, each with one clear message and no traceback.

::

    KbenchError              something the user can correct; exit code 2
    ├── SuiteError           a suite file or a filter asks for what does not exist
    ├── JournalError         the journal cannot be written; exit code 1
    ├── DatasetError         data is unavailable, or is not what it claims to be
    │   ├── SourceUnreachableError   the server behind a source does not answer
    │   └── DatasetParameterError   a parameter names what does not exist
    ├── PluginError          a plugin breaks the contract of its hook
    ├── FeatureError         a feature cannot be used, or two of them clash
    ├── ClusterError         a Dask cluster cannot be reached, or would not compute the same
    ├── BundleError          a bundle of results is damaged or forged, or cannot be written
    ├── ExportError          a model cannot be saved, or not be loaded as it was
    └── StoreError           the MLflow store cannot be opened, read or written
"""


class KbenchError(Exception):
    """Base of every error that the command line shows as one message."""


class _MistakesError(KbenchError):
    """One line per mistake: the place, what was found, what is allowed."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class SuiteError(_MistakesError):
    """A suite file, a name or a filter is wrong; `problems` has a line for each mistake."""


class DatasetError(KbenchError):
    """A dataset is unavailable; the message names it, the cause, and a remedy."""


class SourceUnreachableError(DatasetError):
    """The server behind a source does not answer, so that further requests would fail too."""


class DatasetParameterError(DatasetError, ValueError):
    """A parameter of a dataset names what does not exist, such as a column: a wrong suite."""


class PluginError(KbenchError):
    """A plugin breaks the contract of its hook."""


class FeatureError(_MistakesError):
    """A feature cannot be used, or two of them answer where one is asked."""


class ClusterError(KbenchError):
    """A Dask cluster cannot be reached, or its workers would not compute the same."""


class BundleError(KbenchError):
    """A bundle of results is damaged or forged, or cannot be written."""


class ExportError(KbenchError):
    """A model cannot be saved, or predicts otherwise once it is loaded."""


class StoreError(KbenchError):
    """The MLflow store cannot be opened, read or written."""


class JournalError(KbenchError):
    """The journal cannot be written, so that results could not be kept."""
