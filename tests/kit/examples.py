"""How many examples Hypothesis tries."""

from hypothesis import settings

NIGHTLY = 100
"""Examples of a test that asks for none, in the profile `nightly`."""

LEAST = 25


def examples(number: int) -> int:
    """Returns how many examples to try, where `number` are tried at night: as large a part as the profile has."""
    return min(number, max(LEAST, number * settings().max_examples // NIGHTLY))
