"""An API server with role-based access control at a port: the embedded one, behind the kit's `Rbac`.

    with serving_with_roles(objects, {"ann": Rbac(manifests, "ann")}) as api:
        CliRunner().invoke(app, ["why", "web", "--kubeconfig", str(api.kubeconfig("ann", tmp_path))])

Tokens are not sent without TLS, so that each user has an address: the name is the first part of the path.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

import httpx
import uvicorn

from extender.rules.api_resources import Object
from extender.rules.seeding import seed
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry
from tests.kit.faults import Fault, FaultyTransport, answers
from tests.kit.kubeconfigs import write_kubeconfig
from tests.kit.rbac import Rbac
from tests.kit.service import in_a_thread


@final
class ApiWithRoles:
    """State: a transport for each user, with the requests that came by it, and the port."""

    def __init__(self, api: KubeApi, users: Mapping[str, Rbac | None]) -> None:
        """A user without an `Rbac` may do everything."""
        self.port = 0
        self.transports = {
            user: FaultyTransport(EmbeddedTransport(api), *(() if role is None else role.faults()))
            for user, role in users.items()
        }

    def requests(self, user: str) -> list[tuple[str, str, str]]:
        """Returns (verb, resource, namespace) of each request for a resource."""
        return [(call.verb, call.resource, call.namespace) for call in self.transports[user].calls if call.resource]

    def kubeconfig(self, user: str, folder: Path, namespace: str = "") -> Path:
        """Writes a kubeconfig of this user into the folder."""
        cluster = {"server": f"http://127.0.0.1:{self.port}/{user}"}
        return write_kubeconfig(folder / f"{user}.kubeconfig", cluster, user, namespace)

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        user, _, path = scope["raw_path"].decode().removeprefix("/").partition("/")
        url = f"http://embedded/{path}?{scope['query_string'].decode()}"
        transport = self.transports.get(user)
        if transport is None:
            answer = httpx.Response(401, json=answers.status_object(401, "Unauthorized"))
        else:
            body = (await receive()).get("body", b"")
            request = httpx.Request(scope["method"], url, headers=headers, content=body)
            answer = await transport.handle_async_request(request)
        answer_headers = [(name, value) for name, value in answer.headers.raw if name.lower() != b"transfer-encoding"]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": answer_headers})
        async for part in answer.stream:  # type: ignore[union-attr]
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@contextmanager
def serving_with_roles(objects: Iterable[Object], users: Mapping[str, Rbac | None]) -> Iterator[ApiWithRoles]:
    """Yields the server with these objects, until the end of the block."""
    registry = make_registry(now=lambda: datetime.now(UTC))
    seed(registry, objects)
    api = ApiWithRoles(KubeApi(registry), users)
    with in_a_thread(uvicorn.Server(uvicorn.Config(api, port=0, log_level="warning", lifespan="off"))) as api.port:
        yield api


def without_groups(*groups: str) -> Fault:
    """Returns the fault of a server that does not have these API groups."""
    text = "404 page not found\n"
    action = answers.answer(text, 404, content_type="text/plain; charset=utf-8")
    return Fault(action, where=lambda call: call.group in groups, times=None)
