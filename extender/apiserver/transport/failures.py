"""What it means for a request that its carrier failed."""

from extender.apiserver.errors import ApiError, NoAnswer, Unreachable
from extender.apiserver.transport.carrier import CutError, NotSentError

CARRIER_ERRORS = (NotSentError, CutError)


def failure(request: str, error: NotSentError | CutError) -> ApiError:
    """The `ApiError` for what a carrier raised.

    Arguments:
        request: method and path, for the message.
    """
    if isinstance(error, NotSentError):
        return Unreachable(f"{request}: {error}")
    return NoAnswer(f"{request}: no answer: {error}", timed_out=False)
