"""A real kube-apiserver over etcd, behind a door that speaks plain HTTP and knows the token, so that the networks need
not.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, final

import httpx

from bench.jepsen.history import Record, Seen
from bench.jepsen.machines import ApiServer, Machine
from bench.jepsen.network import CONNECTION_ERRORS, length_of
from bench.jepsen.schedule import Fault, Kind
from extender.client.paths import path
from extender.values.targets.tls import context
from tests.kit.control_plane import ControlPlane

PODS: Final = path("", "v1", "pods", namespace="default")
KUBELET_SECONDS: Final = 0.3
_OF_A_CONNECTION: Final = (
    "connection",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "host",
    "accept-encoding",
)
"""Headers that are not passed on."""


@final
class RealServer(ApiServer):
    """It forgets nothing, for only the API server is killed, not etcd. Faults of its disk and of its clock are
    restarts.
    """

    def __init__(
        self, plane: ControlPlane, machine: Machine, record: Callable[[Record], None], clock: Callable[[], float]
    ) -> None:
        super().__init__(machine, record, clock)
        self._plane = plane
        self._is_open = True
        self._conversations: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}
        self._client = httpx.AsyncClient(
            base_url=plane.url,
            verify=context(plane.target().tls.read()),
            trust_env=False,
            limits=httpx.Limits(max_connections=None),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Opens the door; the control plane runs already."""
        identity = await self._plane.target().credentials.identity(0)
        self._client.headers["Authorization"] = identity.authorization or ""
        door = await asyncio.start_server(self._converse, "127.0.0.1", 0, limit=1 << 22)
        async with self._client:
            self.address.port = door.sockets[0].getsockname()[1]
            self._begins([Seen.of(pod) for pod in await self._pods()])
            kubelet = asyncio.get_running_loop().create_task(self._end_pods())
            yield
            kubelet.cancel()
            door.close()
            for writer in self._conversations:
                writer.transport.abort()
            await asyncio.wait([kubelet, *(task for task in self._conversations.values() if task is not None)])

    async def strike(self, fault: Fault) -> None:
        if fault.kind is Kind.SERVER_PAUSED:
            self._plane.signal_api_server(signal.SIGSTOP)
            await asyncio.sleep(fault.seconds)
            self._plane.signal_api_server(signal.SIGCONT)
            return
        # What the next one does belongs to its life, which begins when it is known what is there.
        self._is_open = False
        await asyncio.to_thread(
            self._plane.kill_api_server if fault.kind is Kind.SERVER_CRASHED else self._plane.stop_api_server
        )
        await asyncio.to_thread(self._plane.start_api_server)
        self._begins([Seen.of(pod) for pod in await self._pods()])
        self._is_open = True

    async def _pods(self) -> list[dict[str, object]]:
        listed: list[dict[str, object]] = (await self._client.get(PODS)).json()["items"]
        return listed

    async def _end_pods(self) -> None:
        """Ends pods that are being deleted, as the kubelets of their nodes would."""
        while True:
            await asyncio.sleep(KUBELET_SECONDS)
            with suppress(httpx.HTTPError, KeyError, ValueError):
                for pod in map(Seen.of, await self._pods()):
                    if pod.is_closed and pod.node:
                        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
                        await self._client.request("DELETE", f"{PODS}/{pod.name}", json=body)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes requests on, and answers back, until one side hangs up."""
        self._conversations[writer] = asyncio.current_task()
        try:
            while self._is_open:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(length_of(head))
                passing = asyncio.ensure_future(self._pass_on(head, body, writer))
                if b"watch=" not in head.partition(b"\r\n")[0]:
                    await passing
                    continue
                hanging_up = asyncio.ensure_future(reader.read(1))
                await asyncio.wait((passing, hanging_up), return_when=asyncio.FIRST_COMPLETED)
                passing.cancel()
                hanging_up.cancel()
                await asyncio.gather(passing, hanging_up, return_exceptions=True)
                return
        except (*CONNECTION_ERRORS, httpx.HTTPError):
            pass  # one of both sides has hung up, and so does the other
        finally:
            del self._conversations[writer]
            writer.transport.close()

    async def _pass_on(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        method, where, _ = first.split(" ", 2)
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        request_headers = [(name, value) for name, value in headers if name.lower() not in _OF_A_CONNECTION]
        async with self._client.stream(method, where, headers=request_headers, content=body, timeout=None) as answer:
            fields = [f"{name}: {value}" for name, value in answer.headers.items() if name not in _OF_A_CONNECTION]
            begin = f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}"
            if "watch=" not in where or answer.status_code != 200:
                content = await answer.aread()
                writer.write(
                    "\r\n".join([begin, *fields, f"Content-Length: {len(content)}", "", ""]).encode("latin-1") + content
                )
            else:
                writer.write("\r\n".join([begin, *fields, "Transfer-Encoding: chunked", "", ""]).encode("latin-1"))
                async for part in answer.aiter_bytes():
                    writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
            await writer.drain()
