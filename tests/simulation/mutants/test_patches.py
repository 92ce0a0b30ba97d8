"""Seeded bugs are kept for long: each one must still fit the code, change it, and leave it readable by Python."""

import pytest

from simulation.cluster.options import FAULTS
from simulation.mutants.patching import patched
from simulation.mutants.profiles import PROFILES
from simulation.mutants.trials import PACKAGES, ROOT, mutants

INVARIANTS = {f"I{number}" for number in range(1, 23)}
GROUPS = {
    "commit cycle", "ownership", "clock and evidence", "scheduler", "dispatcher", "restore", "projections", "inputs",
}  # fmt: skip
ALL = mutants()


def test_there_are_at_least_sixty_and_every_part_has_some():
    assert len(ALL) >= 60
    assert {mutant.group for mutant in ALL} == GROUPS


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_code_and_changes_it_into_other_code_that_compiles(mutant):
    assert mutant.changes
    for change in mutant.changes:
        before = (ROOT / change.path).read_text()
        after = patched(before, change)
        compile(after, change.path, "exec")
        assert after != before


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_a_mutant_is_a_bug_of_the_product_and_says_which_promise_it_breaks(mutant):
    assert mutant.breaks
    assert mutant.caught_by
    assert set(mutant.caught_by) <= INVARIANTS
    for change in mutant.changes:
        package = change.path.split("/")[0]
        assert package in PACKAGES
        assert package != "simulation"


def test_a_mutant_is_tried_under_profiles_that_there_are_and_each_of_these_is_of_use():
    assert {profile for mutant in ALL for profile in mutant.under} == set(PROFILES)


def test_profiles_are_made_of_faults_that_the_simulation_has():
    assert {fault for profile in PROFILES.values() for fault in profile["faults"]} <= set(FAULTS)
