"""The page: GET / and everything below /ui. It shows the answers of /v1.

Every route of `router` and of `parts` knows its caller. What needs none is in `open_to_all`.
"""

import gzip
from collections.abc import Callable, Coroutine, Iterable
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar, final

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute

from api.callers.access import TOKEN_COOKIE, is_signed_in
from api.callers.http_refusals import Refusal
from api.routes.caller import Caller, KnownCaller, caller_of
from api.routes.questions import taking, what_is_wrong
from api.service_state import decoded, service_of
from api.ui import pages
from api.ui.frame import Frame, assets, frame
from api.ui.node_table import BY_ZONE, NodeSelection, OrderError
from api.ui.scheduler_figures import scheduler_figures
from api.ui.what_if_view import changed_nodes, command
from api.ui.wording import span
from extender.answers.catalogue import (
    CapacityOfQuestion,
    ClusterQuestion,
    DecisionQuestion,
    DecisionsQuestion,
    ExplainQuestion,
    FindQuestion,
    HistoryQuestion,
    NodeQuestion,
    PodsQuestion,
    PreemptionsQuestion,
    QueueQuestion,
    WhatIfQuestion,
)
from extender.answers.overviews import NodeOnMap
from extender.answers.types import NodesLike, WhatIfRequest
from extender.values import limits
from extender.values.golang.json_bytes import read
from reprieve.lab.agreement import AgreementQuestion
from reprieve.lab.plan.plan_answer import PlanRequest
from reprieve.lab.plan.plan_question import PlanQuestion
from reprieve.sources.manifest_text import ManifestTextError, configuration_in, objects_in

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_WORTH_COMPRESSING: Final = 1024
"""Bytes of an answer; smaller ones are sent as they are."""
_WITHIN_FRAME: Final = frozenset((400, 404))
"""Codes of refusals that concern the address alone, so that the rest of the page can be shown."""
_TITLES: Final = {
    400: "This address cannot be read",
    401: "Sign in",
    403: "Forbidden",
    404: "Not found",
    422: "This address cannot be read",
    503: "Not ready",
}

T = TypeVar("T")

Name = Annotated[str, Query(max_length=253)]


class WhatIfForm(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The what-if form, as the page sends it."""

    manifest: str = ""
    configuration: str = ""
    like: str = ""
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    drain_nodes: list[str] = []
    remove_nodes: list[str] = []
    include_pending: bool = False
    by: Literal["cpu", "memory"] = "cpu"
    ask: Literal["", "fits", "free"] = ""
    """`fits` asks how many more of the pasted pods find room, `free` for a plan that frees nodes, and nothing else."""
    free_nodes: int = 0
    of: str = ""

    def without_texts(self) -> WhatIfRequest:
        return WhatIfRequest(
            add_nodes=[NodesLike(like=self.like, count=self.count)] if self.like else [],
            drain_nodes=self.drain_nodes,
            remove_nodes=self.remove_nodes,
            include_pending=self.include_pending,
        )

    def question(self) -> WhatIfQuestion:
        """Reads the texts, which may be long."""
        create, configuration = objects_in(self.manifest), configuration_in(self.configuration)
        request = msgspec.structs.replace(self.without_texts(), create=create, configuration=configuration)
        return WhatIfQuestion(request=request)

    def capacity(self) -> CapacityOfQuestion:
        """Reads the manifest, which may be long."""
        objects = objects_in(self.manifest)
        if not objects:
            raise ManifestTextError("paste the pod or the workload to count")
        return CapacityOfQuestion(pod=objects[0] if len(objects) == 1 else {"kind": "List", "items": objects})


class SignInForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The sign-in form: a token, no longer than a cookie may be."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=3900, pattern=r"^[A-Za-z0-9._~+/=-]+$")]


class _PartRoute(APIRoute):
    """The route of a page or a part of one, which is sent compressed to those who take it so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def compressed(request: Request) -> Response:
            answer = await handle(request)
            if len(answer.body) > _WORTH_COMPRESSING and "gzip" in request.headers.get("accept-encoding", ""):
                answer.body = gzip.compress(answer.body, 1)
                answer.headers.update({"Content-Encoding": "gzip", "Content-Length": str(len(answer.body))})
            answer.headers["Vary"] = "Accept-Encoding"
            return answer

        return compressed


@final
class _PageRoute(_PartRoute):
    """The route of a page. A refusal becomes a page that says why, within the frame if the caller is known."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer_or_problem(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as exc:
                return await _problem(request, Refusal(400, what_is_wrong(request, exc.errors())))
            except Refusal as refusal:
                return await _problem(request, refusal)

        return answer_or_problem


router: Final = APIRouter(include_in_schema=False, dependencies=[Depends(caller_of)], route_class=_PageRoute)
parts: Final = APIRouter(include_in_schema=False, dependencies=[Depends(caller_of)], route_class=_PartRoute)
open_to_all: Final = APIRouter(include_in_schema=False)


@router.get("/")
async def cluster(
    caller: KnownCaller, by: Name = "", group: Name = BY_ZONE, sort: Name = "", node: Name = ""
) -> Response:
    """Shows what is wrong, and the cluster; `node` is a filter of nodes, as `chosen` takes it."""
    attempts = await caller.ask(DecisionsQuestion(limit=limits.PAGE_ATTEMPTS))
    preemptions = await caller.ask(PreemptionsQuestion(limit=limits.PAGE_PREEMPTIONS))
    around, selection = await _around(caller), NodeSelection(by, group, sort, node)
    kubectl = "" if caller.service.kubernetes is None else caller.service.cluster
    return _html(pages.cluster_page(around, selection, attempts.items, preemptions.items, kubectl))


@parts.get("/ui/cells")
async def cells(caller: KnownCaller, by: Name = "", group: Name = BY_ZONE, sort: Name = "") -> Response:
    """Sends the names of the nodes in the grids of the same view, and what is said of each."""
    around, selection = await _around(caller), NodeSelection(by, group, sort)
    return Response(pages.cells(around, selection), media_type="application/json", headers=_HEADERS)


@router.get("/ui/nodes")
async def nodes(
    caller: KnownCaller, node: Name = "", sort: Name = "", first: Annotated[int, Query(ge=0, le=10**6)] = 0
) -> Response:
    """Shows the nodes as a table; `sort` is a column, with a `-` before it for descending order."""
    around = await _around(caller)
    try:
        return _html(pages.nodes_page(around, node, sort, first))
    except OrderError as exc:
        raise Refusal(400, str(exc)) from exc


@router.get("/ui/nodes/{name}")
async def node(caller: KnownCaller, name: str) -> Response:
    """Shows a node with its pods."""
    node_on_map = _existing(await caller.ask(NodeQuestion(node=name)), "There is no such node, or it is gone.")
    return _html(pages.node_page(await _around(caller), node_on_map))


@router.get("/ui/pods")
@partial(taking, PodsQuestion)
async def pods(caller: KnownCaller, **parameters: Any) -> Response:
    """Shows the pods of the cluster, or those that are looked for."""
    question = PodsQuestion(**{**parameters, "limit": limits.PAGE_PODS})
    pod_list = await caller.ask(question)
    return _html(pages.pods_page(await _around(caller), pod_list, question))


@router.get("/ui/find")
async def find(caller: KnownCaller, q: Name = "") -> Response:
    """Shows what has a name that contains the words, for a browser without scripts."""
    found_names = await caller.ask(FindQuestion(query=q, limit=limits.PAGE_FOUND))
    return _html(pages.find_page(await _around(caller), found_names, q))


@parts.get("/ui/found")
async def palette_matches(caller: KnownCaller, q: Name = "") -> Response:
    """Sends what the palette shows while somebody types."""
    return _html(pages.find_part(await caller.ask(FindQuestion(query=q, limit=limits.PAGE_SUGGESTED)), q))


@router.get("/ui/pods/{namespace}/{name}")
async def pod(caller: KnownCaller, namespace: str, name: str, events: bool = False) -> Response:
    """Shows why a pod is on its node, or on none; with `events`, also the Events about it, which the API server is
    asked for.
    """
    explained = await caller.ask(ExplainQuestion(namespace=namespace, pod=name, picture=True, events=events))
    answer = _existing(explained, "There is no such pod, and no recent decision about one.")
    chosen = "" if answer.preemption is None else answer.preemption.node
    on_node = await caller.ask(NodeQuestion(node=chosen)) if chosen else None
    itself = await caller.pod(namespace, name)
    return _html(pages.pod_page(await _around(caller), answer, on_node, itself))


@router.get("/ui/history")
@partial(taking, HistoryQuestion)
async def history(caller: KnownCaller, **parameters: Any) -> Response:
    """Shows what was decided, of all pods or of those that are looked for."""
    question = HistoryQuestion(**parameters)
    past = await caller.ask(question)
    preempting = dict.fromkeys(record.node for record in past.preemptions[: limits.PAGE_DRAWN_PREEMPTIONS])
    drawn = await _nodes(caller, preempting)
    return _html(pages.history_page(await _around(caller), past, question, drawn))


@router.get("/ui/decisions/{number}")
async def decision(caller: KnownCaller, number: Annotated[int, Path(ge=1, le=2**53)]) -> Response:
    """Shows one attempt as it was recorded."""
    recorded_attempt = await caller.ask(DecisionQuestion(number=number, picture=True))
    attempt = _existing(recorded_attempt, "This decision is no longer stored; the oldest are dropped first.")
    return _html(pages.decision_page(await _around(caller), attempt))


@router.get("/ui/agreement")
async def agreement(caller: KnownCaller) -> Response:
    """Shows how far a shadow agrees with the scheduler of the cluster."""
    compared = await caller.ask(AgreementQuestion(limit=limits.PAGE_DIFFERENCES))
    answer = _existing(compared, "No decisions are compared: start the service with --shadow.")
    return _html(pages.agreement_page(await _around(caller), answer))


@router.get("/ui/scheduler")
async def scheduler(caller: KnownCaller) -> Response:
    """Shows how well the scheduler itself is."""
    attempts, backend = await caller.ask(DecisionsQuestion(limit=limits.PAGE_ATTEMPTS)), caller.service.backend
    failing = [(health.resource, health.failing_for) for health in backend.health() if health.failing_for is not None]
    figures = scheduler_figures(
        [*backend.metric_families(), *caller.service.verb_metrics.collect()],
        attempts.items,
        caller.now,
        is_elected=backend.leadership is not None,
        resources=[(name, span(timedelta(seconds=seconds))) for name, seconds in failing],
        quarantined=backend.quarantined(),
    )
    return _html(pages.scheduler_page(await _around(caller), figures))


@router.get("/ui/what-if")
async def what_if(caller: KnownCaller) -> Response:
    """Shows the what-if form."""
    return _html(pages.what_if_page(await _around(caller)))


@parts.post("/ui/what-if")
async def try_what_if(request: Request, caller: KnownCaller) -> Response:
    """Answers the what-if form with a part of a page, to be put below the form."""
    form = decoded(_read_form, await request.body())
    if form.ask == "free":
        plan = PlanQuestion(request=PlanRequest(free_nodes=max(form.free_nodes, 1), of=form.of))
        return _html(pages.plan_part(await caller.simulate(lambda: plan), plan.request))
    if form.ask:
        return _html(pages.capacity_part(await caller.simulate(form.capacity), form.manifest))
    answer = await caller.simulate(form.question)
    changed = changed_nodes(answer)
    drawn = await _nodes(caller, changed[: limits.PAGE_CHANGED_NODES])
    shell_command = command(form.without_texts(), form.manifest, form.configuration)
    return _html(pages.what_if_part(await _around(caller), answer, drawn, changed, form.by, shell_command))


@router.get("/ui/help")
async def help_(caller: KnownCaller) -> Response:
    """Shows what can be asked, and where."""
    return _html(pages.help_page(await _around(caller)))


@open_to_all.post("/ui/sign-in")
async def sign_in(request: Request) -> Response:
    """Keeps the token in a cookie that scripts cannot read and that other sites cannot make the browser send."""
    form = decoded(partial(read, SignInForm), await request.body())
    answer = Response(status_code=204)
    answer.set_cookie(TOKEN_COOKIE, form.token, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


@open_to_all.post("/ui/sign-out")
async def sign_out(request: Request) -> Response:
    """Drops the cookie, and leads to the sign-in form."""
    answer = RedirectResponse("/", 303, _HEADERS)
    # A browser does not send the cookie along with what another site has made it send; then it is not dropped, either.
    if TOKEN_COOKIE in request.cookies:
        answer.delete_cookie(TOKEN_COOKIE, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


@open_to_all.get("/ui/static/{version}/{name}")
async def static(version: str, name: str) -> Response:
    """Sends a file of the page. Its path changes with its content, so that browsers may keep it forever."""
    asset = assets().files.get(name)
    if asset is None or version != assets().version:
        raise Refusal(404, "there is nothing at this path")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(asset.content, media_type=asset.media_type, headers=headers)


@router.get("/ui/{path:path}")
async def nowhere(path: str) -> Response:
    """Says that there is no such page."""
    raise Refusal(404, "There is no such page.")


def _read_form(body: bytes) -> WhatIfForm:
    if len(body) > limits.WHAT_IF_FORM:
        raise Refusal(413, f"a form may have {limits.WHAT_IF_FORM} bytes")
    return read(WhatIfForm, body)


def _html(text: str) -> HTMLResponse:
    return HTMLResponse(text, headers=_HEADERS)


def _existing(answer: T | None, words: str) -> T:
    if answer is None:
        raise Refusal(404, words)
    return answer


async def _nodes(caller: Caller, names: Iterable[str]) -> dict[str, NodeOnMap]:
    """Returns those of the nodes that exist."""
    node_by_name = {name: await caller.ask(NodeQuestion(node=name)) for name in names}
    return {name: node for name, node in node_by_name.items() if node is not None}


async def _problem(request: Request, refusal: Refusal) -> Response:
    """Returns a page that says why another one is not shown."""
    title = _TITLES.get(refusal.code, "This cannot be shown")
    code = 400 if refusal.code == 422 else refusal.code
    caller_of: Callable[[Request], Caller] | None = getattr(request.state, "caller_of", None)
    if caller_of is not None and code in _WITHIN_FRAME:
        text = pages.problem_page(title, str(refusal), await _around(caller_of(request)))
    else:
        service = service_of(request)
        signed_in = code != 401 and service is not None and is_signed_in(service.access, request)
        asks_for_token = code == 401 and service is not None and service.access.takes_tokens(request)
        text = pages.problem_page(
            title, str(refusal), asks_for_token=asks_for_token, signed_in=signed_in, reloads=code == 503
        )
    return HTMLResponse(text, code, {**refusal.headers, **_HEADERS})


async def _around(caller: Caller) -> Frame:
    """Returns what stands around every page."""
    cluster_map, queue = await caller.ask(ClusterQuestion()), await caller.ask(QueueQuestion())
    return frame(
        cluster_map,
        queue,
        caller.now,
        caller.version,
        signed_in=is_signed_in(caller.service.access, caller.request),
        has_shadow=caller.service.shadow is not None,
        warning=getattr(caller.request.state, "warning", ""),
    )
