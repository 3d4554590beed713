"""The API server that is asked, and whether it answers at all, which is found out before anything else is loaded."""

import asyncio
import os
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import Final

from extender.client.credentials.target_lookup import find_target
from extender.values.targets.target import CredentialsError, Target
from reprieve.errors import SourceAwayError, StartUpError

REACH_SECONDS: Final = 5.0
"""The time in which an API server has to say its version."""


def target_of(kubeconfig: Path | None, context: str | None) -> Target:
    """Returns the API server of a kubeconfig, or the one that kubectl would ask. Raises StartUpError if it has none."""
    return _cached_target(kubeconfig, context or "", tuple(os.environ.items()))


@cache
def _cached_target(kubeconfig: Path | None, context: str, environment: tuple[tuple[str, str], ...]) -> Target:
    environ = dict(environment)
    try:
        return find_target(
            environ, file=kubeconfig, context=context, home=Path(environ["HOME"]) if environ.get("HOME") else None
        )
    except CredentialsError as exc:
        raise StartUpError(exc) from exc


async def reach(kubeconfig: Path | None, context: str | None) -> None:
    """Returns once the API server has answered. Raises SourceAwayError if it does not, or refuses the credentials."""
    from extender.client.client import Client  # noqa: PLC0415 - what there is to say is said before it is loaded
    from extender.client.errors import ApiError, Forbidden, Unauthorized  # noqa: PLC0415

    target = target_of(kubeconfig, context)
    async with aclosing(Client(target)) as client:
        try:
            async with asyncio.timeout(REACH_SECONDS):
                await client.get("/version", timeout=REACH_SECONDS)
        except TimeoutError as exc:
            raise cluster_away(target, f"it has not answered within {REACH_SECONDS:.0f} s") from exc
        except Forbidden:
            return  # it answers, and what may be listed is another question
        except Unauthorized as exc:
            raise cluster_away(target, f"Unauthorized: {exc.message}".removesuffix(": Unauthorized")) from exc
        except ApiError as exc:
            raise cluster_away(target, exc.message) from exc


def cluster_away(target: Target, why: str) -> SourceAwayError:
    """Returns the error for a cluster that cannot be asked, with what to try."""
    advice = "kubectl cluster-info shows whether it answers at all; --context, --server or --dump ask something else"
    if "Unauthorized" in why:
        advice = "its credentials are not accepted: sign in again, or choose another --context"
    elif "Forbidden" in why:
        advice = (
            "kubectl auth can-i --list shows what its user may do; a service (--server) needs only pods to be listed"
        )
    elif "certificate" in why.lower():
        advice = "the kubeconfig has both, or certificate-authority-data"
    return SourceAwayError(f"the cluster at {target.server} cannot be asked: {why}; {advice}")
