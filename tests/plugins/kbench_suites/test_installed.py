"""Every installed suite can be run: its file, its cells and the values of its parameters."""

import pandas as pd
import pytest

from kbench.api.inputs import select_suite
from kbench.execution.plugins import load_registry
from kbench.execution.session import check_components, list_components
from kbench.planning.cells import cells
from kbench.planning.component_refs import runnable
from kbench.planning.suite_file import find, read

REGISTRY = load_registry()


@pytest.mark.slow
@pytest.mark.parametrize("name", runnable(REGISTRY))
def test_every_installed_suite_can_be_run(name, tmp_path, sandbox):
    # the folder of a suite of files: its cells are planned without reading them
    for ref in read(*find(name, REGISTRY), REGISTRY).datasets:
        if "path" in ref.params:
            file = tmp_path / ref.params["path"]
            file.parent.mkdir(exist_ok=True)
            pd.DataFrame({"x1": [1.0, 2.0], "y": [1.0, 2.0]}).to_csv(file, index=False)
    suite = select_suite(name, REGISTRY, data=str(tmp_path))
    planned = cells(suite, REGISTRY)
    assert len(planned) >= len(suite.datasets) > 0
    check_components(sandbox, list_components(suite), memory_mib=4096)
