"""Bugs between parts that are in order. Each is a line that somebody might have forgotten, and has the invariant
that must find it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar, final

import httpx

from extender.assembly.scheduling import Scheduling
from extender.engine import framework as fwk
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.invariants.worlds import Bugs, Take
from tests.kit.faults.streams import IteratedStream

T = TypeVar("T")

SECRET: Final = "correct-horse-battery-staple"
"""In each pod, and in no log."""

# Writes that are not as they were asked for.


@final
class Editing(fwk.Dispatcher):
    """Performs other calls than those that it is given; None is as good as done."""

    def __init__(self, edit: Callable[[fwk.ApiCall[Any]], fwk.ApiCall[Any] | None], inner: fwk.Dispatcher) -> None:
        self._edit = edit
        self._inner = inner

    async def perform(self, call: fwk.ApiCall[T]) -> T:
        edited = self._edit(call)
        return None if edited is None else await self._inner.perform(edited)  # type: ignore[return-value]

    def submit(self, call: fwk.ApiCall[T]) -> asyncio.Future[T | None]:
        edited = self._edit(call)
        if edited is not None:
            return self._inner.submit(edited)
        done: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


def writing(edit: Callable[[fwk.ApiCall[Any]], fwk.ApiCall[Any] | None]) -> Bugs:
    return Bugs(writing=lambda inner: Editing(edit, inner))


def without_uid(call: fwk.ApiCall[Any]) -> fwk.ApiCall[Any]:
    return replace(call, uid="") if isinstance(call, fwk.BindPod | fwk.DeletePod) else call


def without_promises(call: fwk.ApiCall[Any]) -> fwk.ApiCall[Any] | None:
    return None if isinstance(call, fwk.PatchPodStatus) and call.nominated_node_name else call


# Changes that do not arrive as they were said.


def taking(is_taken: Callable[[HasMetadata | None, HasMetadata | None], bool]) -> Bugs:
    """Only some changes arrive."""

    def deaf(take: Take) -> Take:
        def hear(old: HasMetadata | None, new: HasMetadata | None) -> None:
            if is_taken(old, new):
                take(old, new)

        return hear

    return Bugs(taking=deaf)


def changing(change: Callable[[Pod], Pod | None]) -> Bugs:
    """Pods are not what they are."""

    def inventive(take: Take) -> Take:
        def hear(old: HasMetadata | None, new: HasMetadata | None) -> None:
            take(old, change(new) if isinstance(new, Pod) else new)

        return hear

    return Bugs(taking=inventive)


def is_no_end_of_a_bound_pod(old: HasMetadata | None, new: HasMetadata | None) -> bool:
    return not (isinstance(old, Pod) and old.spec.node_name and new is None)


def is_not_of_a_third_of_the_pods(old: HasMetadata | None, new: HasMetadata | None) -> bool:
    obj = new or old
    return not (isinstance(obj, Pod) and obj.name in ("p0", "p3", "p6", "p9"))


def labelled(pod: Pod) -> Pod:
    # Others may share what is in there; nobody else has these labels.
    if "only" in pod.metadata.labels:
        pod.metadata.labels["seen"] = "true"
    return pod


def talkative(pod: Pod) -> Pod:
    logging.getLogger("extender.talkative").info("pod %s has the password %s", pod.name, SECRET)
    return pod


@final
class Hopeful(httpx.AsyncBaseTransport):
    """What is gone may come again: 410 is not heard."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        if response.status_code == 410:
            return httpx.Response(200, stream=IteratedStream(_silence()))
        if request.url.params.get("watch") in ("1", "true") and isinstance(response.stream, httpx.AsyncByteStream):
            stream = IteratedStream(_without_errors(response.stream), response.stream)
            return httpx.Response(response.status_code, headers=response.headers, stream=stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _silence() -> AsyncIterator[bytes]:
    await asyncio.get_running_loop().create_future()
    yield b""


async def _without_errors(chunks: httpx.AsyncByteStream) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        if b'"type":"ERROR"' not in chunk:
            yield chunk
    await asyncio.get_running_loop().create_future()


# Parts that do less than they promise.


def losing(part: Callable[[Scheduling], object], name: str) -> Bugs:
    """A method of a part does nothing."""

    def lose(alone: Scheduling) -> None:
        setattr(part(alone), name, lambda *arguments, **keywords: None)

    return Bugs(losing=lose)


def careless(alone: Scheduling) -> None:
    """Whoever failed is done with."""
    queue = alone.world.queue
    queue.add_unschedulable_if_not_present = lambda info: queue.done(info.pod.uid)  # type: ignore[method-assign]


def impatient(alone: Scheduling) -> None:
    """Whoever comes back is tried again at once."""
    queue = alone.world.queue
    add = queue.add_unschedulable_if_not_present

    def and_again(info: Any) -> None:
        add(info)
        asyncio.get_running_loop().call_later(2, queue.activate, [info.pod])

    queue.add_unschedulable_if_not_present = and_again  # type: ignore[method-assign]


def slow_to_kill(inner: fwk.Dispatcher) -> fwk.Dispatcher:
    """Victims are told to go minutes after it was decided."""

    class Slow(fwk.Dispatcher):
        async def perform(self, call: fwk.ApiCall[T]) -> T:
            if isinstance(call, fwk.DeletePod):
                await asyncio.sleep(150)
            return await inner.perform(call)

        def submit(self, call: fwk.ApiCall[T]) -> asyncio.Future[T | None]:
            return inner.submit(call)

    return Slow()


BUGS: Final[Mapping[str, tuple[str, Bugs]]] = {
    "bindings and deletions name no UID": ("bound once", writing(without_uid)),
    "bound pods take no room": ("room", changing(lambda pod: None if pod.spec.node_name else pod)),
    "victims go before anything is promised": ("promised victims", writing(without_promises)),
    "nobody is tried again without a reason": (
        "tried again",
        losing(lambda alone: alone.world.queue, "flush_unschedulable_pods_leftover"),
    ),
    "who fails is not queued again": ("not lost", Bugs(losing=careless)),
    "some pods are never heard of": ("not lost", taking(is_not_of_a_third_of_the_pods)),
    "bound pods never end": ("cache", taking(is_no_end_of_a_bound_pod)),
    "410 is not heard": ("cache", Bugs(listening=Hopeful)),
    "an assumption is not forgotten": ("not lost", losing(lambda alone: alone.world.cluster, "forget")),
    "an attempt is never done": ("at rest", losing(lambda alone: alone.world.queue, "done")),
    "who comes back is tried again at once": ("bounded", Bugs(losing=impatient)),
    "somebody writes into what informers hold": ("unchanged objects", changing(labelled)),
    "nobody hears that something has changed": (
        "scheduled",
        losing(lambda alone: alone.world.queue, "move_all_to_active_or_backoff_queue"),
    ),
    "a password is logged": ("log", changing(talkative)),
}
