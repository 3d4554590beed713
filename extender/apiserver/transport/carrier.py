"""Carrier: sends requests to an API server, over sockets (`http1_carrier`) or to a transport in memory (`httpx_carrier`).

What goes wrong on the way is reported as one of the errors in this module.
"""

from abc import ABC, abstractmethod
from typing import final

from extender.apiserver.errors import ApiError, NoAnswer, Unreachable

Headers = tuple[tuple[str, str], ...]
"""Names and values, neither with a line break in it."""


@final
class NotSentError(Exception):
    """No connection came about, so that nothing was sent."""


@final
class CutError(Exception):
    """The request was (perhaps) sent, and no whole answer came: the connection was lost, or what came is no HTTP."""


class Answer(ABC):
    """The head of an answer; its body is still to come."""

    status: int

    @abstractmethod
    def header(self, name: str) -> str:
        """The value of the header with this name, which is given in lower case; empty if there is none."""

    @abstractmethod
    async def read_some(self) -> bytes:
        """The next bytes of the body, as they come, compressed if the head says so; none at its end.

        Raises:
            CutError: the body does not come to its end.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """No more of it is read. To be called once, whatever happened."""


class Carrier(ABC):
    """Carries requests to one server, many at a time."""

    @abstractmethod
    async def send(self, method: str, path: str, headers: Headers, content: bytes, connect_seconds: float) -> Answer:
        """The answer, as soon as its head is there. There is no time limit but the one for the connection.

        Arguments:
            path: below the server's URL, quoted, perhaps with a query.
            connect_seconds: at most, until there is a connection.

        Raises:
            NotSentError: there was none.
            CutError: no head came.
            TimeoutError: the carrier has a time limit of its own.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Ends all connections, those in use too."""


CARRIER_ERRORS = (NotSentError, CutError)


def failure(request: str, error: NotSentError | CutError) -> ApiError:
    """The `ApiError` for what a carrier raised.

    Arguments:
        request: method and path, for the message.
    """
    if isinstance(error, NotSentError):
        return Unreachable(f"{request}: {error}")
    return NoAnswer(f"{request}: no answer: {error}", timed_out=False)
