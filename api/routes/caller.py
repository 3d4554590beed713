"""The caller of a request, who asks questions: the answers show only the names that the caller may see."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from inspect import isawaitable
from operator import attrgetter
from typing import Annotated, TypeVar, final

from fastapi import Depends, Request

from api.callers.http_refusals import RETRY_SOON, Refusal, cannot_be_done, unreadable_refused
from api.service_state import ServiceState, UntilHangUp, service_of
from api.ui.wording import span
from extender import __version__
from extender.answers.catalogue import AboutQuestion, Question, worked_out
from extender.answers.questions import Questions
from extender.answers.redaction import Visibility, as_seen_by
from extender.answers.types import AboutService, QuestionError
from extender.values.config.configuration import ConfigErrors
from extender.values.klog.setup import escaped
from extender.values.objects.decoding import DecodeError
from extender.values.objects.pod import Pod
from reprieve.lab.agreement import Agreement, AgreementQuestion
from reprieve.sources.manifest_text import ManifestTextError

A = TypeVar("A")


@final
@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, with the time and the cluster's version when it came.

    What waits for something ends with a ClientDisconnect when the caller hangs up (`UntilHangUp`).
    """

    request: Request
    service: ServiceState
    questions: Questions
    visibility: Visibility
    now: datetime
    version: str

    async def ask(self, question: Question[A]) -> A:
        """Returns the answer. Raises Refusal: 403 for a namespace whose pods are not shown, 422 for what is wrong."""
        namespace, chooses = question.namespace_asked, question.row.chooses_names
        if namespace and not await self.visibility.namespaces({namespace}):
            raise Refusal(403, "you may not list the pods of this namespace")
        if question.takes_worker:
            return await self.simulate(lambda: question)
        # What is asked about the service itself is answered below, the rest by what knows the cluster.
        answering = self if isinstance(question, AboutQuestion | AgreementQuestion) else self.questions
        try:
            answer = question.ask(answering, **({"visibility": self.visibility} if chooses else {}))
            if isawaitable(answer):
                async with UntilHangUp(self.request):
                    answer = await answer
        except QuestionError as exc:
            raise cannot_be_done(exc) from exc
        return answer if chooses else await as_seen_by(self.visibility, answer)

    def about(self) -> AboutService:
        nodes, pods = self.questions.size
        return AboutService(version=__version__, cluster=self.service.cluster, nodes=nodes, pods=pods)

    def agreement(self, limit: int) -> Agreement | None:
        return None if self.service.shadow is None else self.service.shadow.agreement(limit)

    async def simulate(self, read: Callable[[], Question[A]]) -> A:
        """Returns the worker's answer; the worker calls `read`, so that waiting questions are bytes. Raises Refusal:
        400 if the question cannot be read, 422 if something in it is wrong.
        """
        try:
            with unreadable_refused():
                answer = await self.service.worker.answer(self.request, lambda: worked_out(read(), self.questions))
        except (DecodeError, ConfigErrors, ManifestTextError, QuestionError) as exc:
            raise cannot_be_done(exc) from exc
        return await as_seen_by(self.visibility, answer)

    async def pod(self, namespace: str, name: str) -> Pod | None:
        """Returns the pod as the scheduler knows it; None if there is none, or the caller may not see it."""
        return self.questions.pod(namespace, name) if await self.visibility.namespaces({namespace}) else None


async def caller_of(request: Request) -> Caller:
    """Returns the caller, for routes. Raises Refusal: 503 while nothing can be answered, 401 for an unknown caller."""
    service = service_of(request)
    if service is None or service.backend.questions is None or not service.backend.is_ready():
        raise Refusal(503, await _why_not_ready(request, service), RETRY_SOON)
    questions, visibility = service.backend.questions, await service.access.of(request)
    if service.kubernetes is not None and not service.cluster:
        # No port is kubectl's alone: what was called serves the cluster, too.
        service = replace(service, cluster=str(request.base_url).rstrip("/"))
    # For the page that says what went wrong. Without the request, which would hold itself, and its whole body with it,
    # until the garbage collector comes by.
    request.state.caller_of = partial(
        Caller,
        service=service,
        questions=questions,
        visibility=visibility,
        now=datetime.now(UTC),
        version=questions.version(),
    )
    caller: Caller = request.state.caller_of(request)
    return caller


async def _why_not_ready(request: Request, service: ServiceState | None) -> str:
    """Returns which server does not answer, and since when, to those who may also ask /readyz/informer-sync."""
    plain = "the service is starting, or does not know the cluster at the moment"
    if service is None:
        return plain
    try:
        await service.access.admit(request, "/readyz/informer-sync", is_verb=False)
    except Refusal:
        return plain
    health = service.backend.health()
    failing = (informer for informer in health if informer.failing_for is not None)
    lost = max(failing, key=attrgetter("failing_for"), default=None)
    if lost is not None:
        since, why = span(timedelta(seconds=lost.failing_for or 0)), escaped(lost.last_error, 512)
        return (
            f"the API server at {service.cluster} has not answered for {since} ({why}); check that it is running, and "
            "that the service's kubeconfig has its address"
        )
    num_synced = sum(informer.synced for informer in health)
    return (
        f"the service is reading the cluster: {num_synced} of {len(health)} kinds of objects so far"
        if health
        else plain
    )


KnownCaller = Annotated[Caller, Depends(caller_of)]
