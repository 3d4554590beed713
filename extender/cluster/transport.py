"""An httpx transport to a KubeApi, so that the same client reaches the embedded cluster and real ones."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final, final
from urllib.parse import parse_qs, unquote

import httpx

from extender.cluster.kube_api import KubeApi
from extender.cluster.requests.request_info import Request
from extender.cluster.responses.response import StreamResponse


@final
class EmbeddedTransport(httpx.AsyncBaseTransport):
    """Hands requests to a KubeApi in the same event loop. A watch streams; closing its response ends it."""

    def __init__(self, api: KubeApi) -> None:
        self._api: Final = api

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._api.handle(
            Request(
                request.method,
                unquote(request.url.raw_path.partition(b"?")[0].decode("ascii"), errors="replace"),
                parse_qs(request.url.query.decode("ascii"), keep_blank_values=True),
                {name.lower(): value for name, value in request.headers.items()},
                await request.aread(),
            )
        )
        headers = dict(answer.headers)
        if isinstance(answer, StreamResponse):
            return httpx.Response(answer.status, headers=headers, stream=_Chunks(answer.chunks), request=request)
        headers["Content-Length"] = str(len(answer.body))
        return httpx.Response(answer.status, headers=headers, content=answer.body, request=request)


@final
class _Chunks(httpx.AsyncByteStream):
    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        await self._chunks.aclose()
