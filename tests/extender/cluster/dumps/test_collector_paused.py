"""The collector rests for a block, and is as it was afterwards."""

import gc

import pytest

from extender.values.concurrency.short_collections import collector_paused


def test_the_collector_rests_and_works_again_even_after_a_failure() -> None:
    with pytest.raises(ZeroDivisionError), collector_paused():
        resting = not gc.isenabled()
        raise ZeroDivisionError

    assert resting
    assert gc.isenabled()


def test_who_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass

        assert not gc.isenabled()
    finally:
        gc.enable()
