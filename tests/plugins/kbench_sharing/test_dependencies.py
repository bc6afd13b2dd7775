"""What a bundle says of what results were made from."""

import json

from kbench.records import Manifest
from kbench_sharing.dependencies import portable


def test_what_is_published_has_no_paths_and_no_values():
    whole = Manifest(
        modules={"maps": "1", "maps.late": None},
        files={"maps:weights.bin": "2", "/home/ada/table.csv": "3", "/home/ada/gone.csv": None},
        variables={"LEVEL": "4", "UNSET": None},
        distributions={"python": "3.11", "numpy": "2.1 5"},
    )
    published = portable(whole)
    assert published.files == {"maps:weights.bin": "2", "/0": "", "/1": ""}
    assert published.variables == {"LEVEL": "set", "UNSET": None}
    assert published.distributions == {"python": "3.11", "numpy": "2.1"}
    assert published.modules == whole.modules
    assert "ada" not in json.dumps(published.to_json())
