"""The service that is examined."""

from tests.api.conftest import example

__all__ = ["example"]
