"""How many examples Hypothesis tries."""

from hypothesis import settings

NIGHTLY = 100
"""Examples of a test that asks for none, in the profile `nightly`."""

LEAST = 25


def examples(number: int, least: int = LEAST) -> int:
    """Returns how many examples to try, where `number` are tried at night: the part that the profile has, but no fewer
    than `least`.
    """
    return min(number, max(least, number * settings().max_examples // NIGHTLY))
