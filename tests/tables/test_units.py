"""Numbers with signs and units around them."""

import pytest

from kbench.errors import DatasetError
from kbench.tables.units import UnitColumn


@pytest.mark.parametrize("spec", ["price", "=$", "price=$|;", "price=$|.."[:-1] + "_"])
def test_a_wrong_spec_is_refused(spec):
    with pytest.raises(DatasetError, match="unit must be COLUMN=UNIT"):
        UnitColumn.parsed(spec, "t")
