"""How many examples Hypothesis tries."""

from hypothesis import settings

NIGHTLY = 100
"""Examples of a test that asks for none, in the profile `nightly`."""

LEAST = 25


def examples(number: int, minimum: int = LEAST) -> int:
    """Returns how many examples to try, where `number` are tried at night: the part that the profile has, but no fewer
    than `minimum`.
    """
    return min(number, max(minimum, number * settings().max_examples // NIGHTLY))
