"""The faults that `make mutants` plants."""

import pytest

from tests.kit.service import ROOT
from tools.plant_mutants import Mutant, mutants


@pytest.mark.parametrize("mutant", [pytest.param(one, id=one.id) for one in mutants() if not one.equivalent])
def test_a_planted_fault_still_fits_the_code(mutant: Mutant) -> None:
    """Else it would be planted no more. Whoever changes the line changes it in tools/mutants.json, too."""
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert [test for test in mutant.tests if not (ROOT / test).exists()] == []
