"""The page: GET / and everything below /ui. It shows the answers of /v1."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Final, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from api.callers.access import is_signed_in
from api.callers.authentication import TOKEN_COOKIE
from api.callers.http_refusals import Refusal, cannot_be_done
from api.routes.caller import Caller, caller_of
from api.service_state import decoded, service_of
from api.ui import pages
from api.ui.assets import assets
from api.ui.frame import Frame, frame
from api.ui.manifest_text import ManifestTextError, configuration_in, objects_in
from api.ui.node_table import BY_ZONE, NodeSelection, OrderError
from api.ui.timeline import HistoryFilter, HistoryFilterError
from api.ui.what_if_view import changed_nodes, command
from extender.answers.overviews import ClusterMap
from extender.answers.questions import QuestionError
from extender.answers.types import NodesLike, WhatIfRequest
from extender.values import limits
from extender.values.config.configuration import ConfigErrors
from extender.values.golang.json_bytes import read
from extender.values.objects.decoding import DecodeError

router: Final = APIRouter(include_in_schema=False)


_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_WITHIN_FRAME: Final = frozenset((400, 404))
"""Codes of refusals that concern the address alone, so that the rest of the page can be shown."""
_TITLES: Final = {
    400: "This address cannot be read",
    401: "Sign in",
    403: "Forbidden",
    404: "Not found",
    503: "Not ready",
}

Name = Annotated[str, Query(max_length=253)]
Time = Annotated[str, Query(max_length=32)]


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


class SignInForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The sign-in form: a token, no longer than a cookie may be."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=3900, pattern=r"^[A-Za-z0-9._~+/=-]+$")]


@router.get("/")
async def cluster(request: Request, by: Name = "", group: Name = BY_ZONE, sort: Name = "", node: Name = "") -> Response:
    """Shows what is wrong, and the cluster; `node` is a filter of nodes, as `chosen` takes it."""
    asked = NodeSelection(by, group, sort, node)

    async def make(caller: Caller) -> str:
        shown = await caller.map()
        attempts, preemptions = (
            await caller.decisions(limits.PAGE_ATTEMPTS),
            await caller.preemptions(limits.PAGE_PREEMPTIONS),
        )
        around = await _around(caller, shown)
        return pages.cluster_page(around, shown, asked, attempts.items, preemptions.items, caller.now)

    return await _page(request, make)


@router.get("/ui/cells")
async def cells(request: Request, by: Name = "", group: Name = BY_ZONE, sort: Name = "") -> Response:
    """Sends the names of the nodes in the grids of the same view, and what is said of each."""
    caller = await caller_of(request)
    shown = await caller.map()
    around, asked = await _around(caller, shown), NodeSelection(by, group, sort)
    return Response(pages.cells(around, shown, asked), media_type="application/json", headers=_HEADERS)


@router.get("/ui/nodes")
async def nodes(
    request: Request, node: Name = "", sort: Name = "", first: Annotated[int, Query(ge=0, le=10**6)] = 0
) -> Response:
    """Shows the nodes as a table; `sort` is a column, with a `-` before it for descending order."""

    async def make(caller: Caller) -> str:
        shown = await caller.map()
        around = await _around(caller, shown)

        try:
            return pages.nodes_page(around, shown, node, sort, first)
        except OrderError as exc:
            raise Refusal(400, str(exc)) from exc

    return await _page(request, make)


@router.get("/ui/nodes/{name}")
async def node(request: Request, name: str) -> Response:
    """Shows a node with its pods."""

    async def make(caller: Caller) -> str:
        found = await caller.node(name)
        if found is None:
            raise Refusal(404, "There is no such node (any more).")
        return pages.node_page(await _around(caller), found)

    return await _page(request, make)


@router.get("/ui/pods")
async def pods(request: Request, namespace: Name = "", workload: Name = "", group: Name = "") -> Response:
    """Shows the pods of a namespace, a workload or a pod group; without a namespace, the namespaces."""

    async def make(caller: Caller) -> str:
        found = await caller.pods(namespace, workload, group, limits.PAGE_PODS)
        return pages.pods_page(
            await _around(caller),
            found,
            namespace,
            workload or group,
            caller.now,
        )

    return await _page(request, make)


@router.get("/ui/find")
async def find(request: Request, q: Name = "") -> Response:
    """Shows what has a name that contains the words, for a browser without scripts."""

    async def make(caller: Caller) -> str:
        found = await caller.find(q, limits.PAGE_FOUND)
        return pages.find_page(await _around(caller), found, q)

    return await _page(request, make)


@router.get("/ui/found")
async def found(request: Request, q: Name = "") -> Response:
    """Sends what the palette shows while somebody types."""
    caller = await caller_of(request)
    return HTMLResponse(pages.find_part(await caller.find(q, limits.PAGE_SUGGESTED), q), headers=_HEADERS)


@router.get("/ui/pods/{namespace}/{name}")
async def pod(request: Request, namespace: str, name: str, events: bool = False) -> Response:
    """Shows why a pod is on its node, or on none; with `events`, also the Events about it, which the API server is
    asked for.
    """

    async def make(caller: Caller) -> str:
        answer = await caller.explain(namespace, name, picture=True)
        if answer is None:
            raise Refusal(404, "There is no such pod, and no recent decision about one.")
        chosen = (
            await caller.node(answer.preemption.node)
            if answer.preemption is not None and answer.preemption.node
            else None
        )
        shown = await caller.map()
        itself = await caller.pod(namespace, name)
        said = await caller.events(namespace, name) if events else None
        return pages.pod_page(await _around(caller, shown), answer, shown, chosen, caller.now, itself, said)

    return await _page(request, make)


@router.get("/ui/history")
async def history(
    request: Request,
    outcome: Name = "",
    name: Name = "",
    namespace: Name = "",
    node: Name = "",
    plugin: Name = "",
    within: Annotated[str, Query(max_length=8, alias="range")] = "",
    since: Time = "",
    until: Time = "",
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """Shows what was decided, of all pods or of those that are looked for."""
    asked = HistoryFilter(
        outcome=outcome,
        name=name,
        namespace=namespace,
        node=node,
        plugin=plugin,
        range=within,
        since=since,
        until=until,
        before=before,
    )

    async def make(caller: Caller) -> str:
        try:
            query = asked.query(caller.now)
        except HistoryFilterError as exc:
            raise Refusal(400, str(exc)) from exc
        past = await caller.past(query)
        names = list(dict.fromkeys(record.node for record in past.preemptions[: limits.PAGE_DRAWN_PREEMPTIONS]))
        nodes = {name: found for name in names if (found := await caller.node(name)) is not None}
        return pages.history_page(await _around(caller), past, asked, nodes, caller.now)

    return await _page(request, make)


@router.get("/ui/decisions/{number}")
async def decision(request: Request, number: Annotated[int, Path(ge=1, le=2**53)]) -> Response:
    """Shows one attempt as it was recorded."""

    async def make(caller: Caller) -> str:
        made = await caller.decision(number, picture=True)
        if made is None:
            raise Refusal(404, "This decision is not kept any more: the oldest go first.")
        around = await _around(caller)
        return pages.decision_page(around, made, caller.now)

    return await _page(request, make)


@router.get("/ui/agreement")
async def agreement(request: Request) -> Response:
    """Shows how far a shadow agrees with the scheduler of the cluster."""

    async def make(caller: Caller) -> str:
        answer = await caller.agreement(limits.PAGE_DIFFERENCES)
        if answer is None:
            raise Refusal(404, "Nothing is compared: start the service with --shadow.")
        return pages.agreement_page(await _around(caller), answer, caller.now)

    return await _page(request, make)


@router.get("/ui/what-if")
async def what_if(request: Request) -> Response:
    """Shows the what-if form."""

    async def make(caller: Caller) -> str:
        return pages.what_if_page(await _around(caller))

    return await _page(request, make)


@router.post("/ui/what-if")
async def try_what_if(request: Request) -> Response:
    """Answers the what-if form with a part of a page, to be put below the form."""
    caller = await caller_of(request)
    form = decoded(_read_form, await request.body())
    question = WhatIfRequest(
        add_nodes=[NodesLike(like=form.like, count=form.count)] if form.like else [],
        drain_nodes=form.drain_nodes,
        remove_nodes=form.remove_nodes,
        include_pending=form.include_pending,
    )

    def read_texts() -> WhatIfRequest:
        create, configuration = objects_in(form.manifest), configuration_in(form.configuration)
        return msgspec.structs.replace(question, create=create, configuration=configuration)

    try:
        answer = await caller.what_if(read_texts)
    except (ManifestTextError, DecodeError, ConfigErrors, QuestionError) as exc:
        raise cannot_be_done(exc) from exc
    changed = changed_nodes(answer)
    drawn = {
        name: found for name in changed[: limits.PAGE_CHANGED_NODES] if (found := await caller.node(name)) is not None
    }
    asked = command(question, form.manifest, form.configuration)
    text = pages.what_if_part(answer, await caller.map(), drawn, changed, form.by, asked)
    return HTMLResponse(text, headers=_HEADERS)


@router.get("/ui/help")
async def help_(request: Request) -> Response:
    """Shows what can be asked, and where."""

    async def make(caller: Caller) -> str:
        return pages.help_page(await _around(caller))

    return await _page(request, make)


@router.post("/ui/sign-in")
async def sign_in(request: Request) -> Response:
    """Keeps the token in a cookie that scripts cannot read and that other sites cannot make the browser send."""
    form = decoded(partial(read, SignInForm), await request.body())
    answer = Response(status_code=204)
    answer.set_cookie(TOKEN_COOKIE, form.token, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


@router.post("/ui/sign-out")
async def sign_out(request: Request) -> Response:
    """Drops the cookie, and leads to the sign-in form."""
    answer = RedirectResponse("/", 303, _HEADERS)
    # A browser does not send the cookie along with what another site has made it send; then it is not dropped, either.
    if TOKEN_COOKIE in request.cookies:
        answer.delete_cookie(TOKEN_COOKIE, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


@router.get("/ui/static/{version}/{name}")
async def static(version: str, name: str) -> Response:
    """Sends a file of the page. Its path changes with its content, so that browsers may keep it forever."""
    found = assets().files.get(name)
    if found is None or version != assets().version:
        raise Refusal(404, "there is nothing at this path")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found.content, media_type=found.media_type, headers=headers)


@router.get("/ui/{path:path}")
async def nowhere(request: Request, path: str) -> Response:
    """Says that there is no such page."""

    async def make(caller: Caller) -> str:
        raise Refusal(404, "There is no such page.")

    return await _page(request, make)


def _read_form(body: bytes) -> WhatIfForm:
    if len(body) > limits.WHAT_IF_FORM:
        raise Refusal(413, f"a form may have {limits.WHAT_IF_FORM} bytes")
    return read(WhatIfForm, body)


async def _page(request: Request, make: Callable[[Caller], Awaitable[str]]) -> Response:
    """Returns the page; a refusal becomes a page that says why, within the frame if the caller is known."""
    caller: Caller | None = None
    try:
        caller = await caller_of(request)
        return HTMLResponse(await make(caller), headers=_HEADERS)
    except Refusal as refusal:
        title = _TITLES.get(refusal.code, "This cannot be shown")
        if caller is not None and refusal.code in _WITHIN_FRAME:
            around = await _around(caller)
            text = pages.problem_page(title, str(refusal), around)
            return HTMLResponse(text, refusal.code, {**refusal.headers, **_HEADERS})
        service = service_of(request)
        signed_in = refusal.code != 401 and service is not None and is_signed_in(service.access, request)
        asks_for_token = refusal.code == 401 and service is not None and service.access.takes_tokens(request)
        text = pages.problem_page(title, str(refusal), asks_for_token=asks_for_token, signed_in=signed_in)
        return HTMLResponse(text, refusal.code, {**refusal.headers, **_HEADERS})


async def _around(caller: Caller, shown: ClusterMap | None = None) -> Frame:
    """Returns what stands around every page; `shown` is the map, if it is known already."""
    return frame(
        shown or await caller.map(),
        await caller.queue(),
        caller.now,
        caller.version,
        signed_in=is_signed_in(caller.service.access, caller.request),
        has_shadow=caller.service.shadow is not None,
    )
