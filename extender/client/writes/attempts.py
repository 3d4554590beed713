"""Performs a call to its end: which failures are retried, and what a lost answer means.

A binding is pursued until its outcome is definite. The pod stays assumed meanwhile, because forgetting it would free
room that a late commit takes. All other writes may fail, because their callers decide again.

Upstream: pkg/scheduler/util/utils.go, PatchPodStatus, for the retries of status patches; a binding whose answer is lost
is forgotten there.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Final, final

from extender.client import errors
from extender.client.client import Client
from extender.client.writes.call_requests import is_done, read, send
from extender.engine.framework import (
    ApiCall,
    BindPod,
    CallConflict,
    CallError,
    CallNotFound,
    CallUnknown,
    DeletePod,
    PatchPodStatus,
)
from extender.engine.framework.storage_calls import CreateResourceClaim, DeleteResourceClaim, ReadResourceClaim
from extender.values.objects.decoding import DecodeError

STATUS_PAUSES: Final = (0.01, 0.05, 0.25)
"""Seconds between attempts at a status patch. Upstream: retry.DefaultBackoff."""
WRITE_PAUSES: Final = (0.1, 0.5, 2.5)
"""Seconds between attempts at a write whose answer was lost."""
FIRST_BIND_PAUSE: Final = 0.1
LAST_BIND_PAUSE: Final = 5.0


@final
class Attempts:
    """Performs calls, also several at a time. State: the bindings whose outcome is unknown."""

    def __init__(self, client: Client, *, rng: random.Random, now: Callable[[], datetime]) -> None:
        self._client = client
        self._random = rng
        self._now = now
        self.in_limbo: dict[str, float] = {}
        """Pod UID -> the event loop's time since when it is unknown whether the pod is bound."""

    async def perform(self, call: ApiCall[Any]) -> Any:
        """Returns the result of the call. Raises CallError."""
        try:
            match call:
                case BindPod():
                    return await self._bind(call)
                case PatchPodStatus():
                    return await self._patch_status(call)
            return await self._write(call)
        except errors.ApiError as exc:
            raise _call_error(exc) from exc
        except DecodeError as exc:
            raise CallUnknown(f"the API server's answer cannot be read: {exc}") from exc

    def _send(self, call: ApiCall[Any]) -> Coroutine[Any, Any, Any]:
        return send(self._client, call, self._now)

    async def _bind(self, call: BindPod) -> None:
        loop = asyncio.get_running_loop()
        pause, may_be_bound = FIRST_BIND_PAUSE, False
        try:
            while True:
                try:
                    await self._send(call)
                    return
                except errors.Conflict:
                    # The pod has a node by now, or is another one, or is terminating: an earlier attempt cannot change
                    # that any more.
                    if await self._is_bound(call):
                        return
                    raise
                except errors.Fenced as exc:
                    if may_be_bound:
                        raise CallUnknown(exc.message) from exc
                    raise
                except (errors.BadRequest, errors.Invalid, errors.NotFound):
                    raise
                except errors.ApiError as exc:
                    if exc.may_have_happened:
                        may_be_bound = True
                        self.in_limbo.setdefault(call.uid, loop.time())
                    elif not may_be_bound:
                        raise
                    elif isinstance(exc, errors.Forbidden) and await self._is_bound(call):
                        return
                await asyncio.sleep(pause * (1 + 0.1 * self._random.random()))
                pause = min(2 * pause, LAST_BIND_PAUSE)
        finally:
            self.in_limbo.pop(call.uid, None)

    async def _is_bound(self, call: BindPod) -> bool:
        """Returns whether the pod is bound to the node on the API server, which is asked until it answers."""
        pause = FIRST_BIND_PAUSE
        while True:
            try:
                return is_done(call, await read(self._client, call))
            except errors.NotFound:
                return False
            except errors.ApiError as exc:
                if not (exc.may_have_happened or isinstance(exc, errors.Unreachable | errors.TooManyRequests)):
                    raise
            self.in_limbo.setdefault(call.uid, asyncio.get_running_loop().time())
            await asyncio.sleep(pause * (1 + 0.1 * self._random.random()))
            pause = min(2 * pause, LAST_BIND_PAUSE)

    async def _patch_status(self, call: PatchPodStatus) -> None:
        for pause in STATUS_PAUSES:
            try:
                return await self._send(call)  # type: ignore[no-any-return]
            except errors.Conflict as exc:
                rebased = await self._rebased(call, exc)
                if rebased.is_no_op:
                    return None
                call = rebased
            except (errors.ServerError, errors.Unreachable):
                pass
            await asyncio.sleep(pause * (1 + 0.1 * self._random.random()))
        return await self._send(call)  # type: ignore[no-any-return]

    async def _rebased(self, call: PatchPodStatus, refusal: errors.Conflict) -> PatchPodStatus:
        """Returns the patch for the present pod, if it can be read. Raises Conflict if the patch does not apply."""
        try:
            patch = call.rebased_on(await read(self._client, call))
        except (errors.ServerError, errors.Unreachable):
            return call
        if patch is None:
            raise refusal
        return patch

    async def _write(self, call: ApiCall[Any]) -> Any:
        """Performs a write, again if its answer was lost; refused then, the object shows whether it was done."""
        was_lost = False
        for pause in (*WRITE_PAUSES, None):
            try:
                return await self._send(call)
            except (errors.Conflict, errors.NotFound) as exc:
                if was_lost and isinstance(call, DeletePod | DeleteResourceClaim) and isinstance(exc, errors.NotFound):
                    return None
                if was_lost and isinstance(exc, errors.Conflict):
                    obj = await read(self._client, call)
                    if is_done(call, obj):
                        return obj
                raise
            except errors.ApiError as exc:
                # A claim whose name is generated would be created twice.
                if (
                    pause is None
                    or not exc.may_have_happened
                    or isinstance(call, ReadResourceClaim | CreateResourceClaim)
                ):
                    raise
                was_lost = True
            await asyncio.sleep(pause)
        return None


def _call_error(exc: errors.ApiError) -> CallError:
    match exc:
        case errors.NotFound():
            return CallNotFound(exc.message)
        case errors.Conflict():
            return CallConflict(exc.message)
    return CallUnknown(exc.message) if exc.may_have_happened else CallError(exc.message)
