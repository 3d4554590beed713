"""Bodies of answers, decompressed as they come."""

import zlib
from typing import Final, final

from extender.apiserver.errors import NotKubernetes
from extender.apiserver.transport.carrier import Answer

MAX_STEP: Final = 1 << 20
"""Bytes that come out of a compressed body at a time: the next ones only when somebody wants them."""

_GZIP: Final = zlib.MAX_WBITS | 16


@final
class Body:
    """The body of an answer.

    Raises:
        NotKubernetes: at once for an encoding that nobody asked for; by `read_some` for what is not what it claims to be.
    """

    def __init__(self, request: str, answer: Answer) -> None:
        """Arguments: method and path, for messages; the answer, which stays whose it is."""
        encoding = answer.header("content-encoding").strip().lower()
        if encoding not in ("", "identity", "gzip"):
            raise NotKubernetes(f"{request}: the answer can not be decompressed: it is {encoding[:64]!r}", status=answer.status)
        self._request = request
        self._answer = answer
        self._inflater = zlib.decompressobj(_GZIP) if encoding == "gzip" else None

    async def read_some(self) -> bytes:
        """The next bytes; none at the end. Errors of the carrier come as they are."""
        inflater = self._inflater
        if inflater is None:
            return await self._answer.read_some()
        while not inflater.eof:
            packed = inflater.unconsumed_tail or await self._answer.read_some()
            if not packed:
                raise self._broken("it breaks off")
            try:
                plain = inflater.decompress(packed, MAX_STEP)
            except zlib.error as exc:
                raise self._broken(str(exc)) from exc
            if plain:
                return plain
        # To its end, so that the connection can be used again.
        while await self._answer.read_some():
            pass
        return b""

    async def read(self, cap: int) -> bytes:
        """The whole body.

        Raises:
            NotKubernetes: it is longer than so many bytes.
        """
        parts: list[bytes] = []
        total = 0
        while part := await self.read_some():
            total += len(part)
            if total > cap:
                raise NotKubernetes(f"{self._request}: the answer is longer than {cap} bytes", status=self._answer.status)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _broken(self, why: str) -> NotKubernetes:
        return NotKubernetes(f"{self._request}: the answer can not be decompressed: {why}", status=self._answer.status)
