"""Ports for programs that have to be told one."""

import random
import socket
from contextlib import suppress
from typing import Final

_UNASKED: Final = (15_000, 30_000)
"""Systems give such ports to nobody who asks for any port, so that they are still free when the program begins."""


def free_port() -> int:
    """Returns a port of this machine at which nobody listens."""
    while True:
        port = random.SystemRandom().randint(*_UNASKED)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
