"""How much memory this process may use, and how much of it may be full of bodies that callers have sent."""

import resource
from pathlib import Path
from typing import Final

_MIB: Final = 2**20

_CGROUP: Final = Path("/sys/fs/cgroup")
_FILES: Final = (_CGROUP / "memory.max", _CGROUP / "memory" / "memory.limit_in_bytes")
"""Of version 2, and of version 1."""

_WITHOUT_BODIES: Final = 200 * _MIB
"""What we need before the first caller comes, with a small cluster."""
_ADDRESSES: Final = 400 * _MIB
"""The same, counted as addresses that are mapped."""
_BYTES_A_BYTE: Final = 5
"""What one byte of a body needs until it is answered: itself, what it is decoded to, and the answer. 4.4 were measured."""
_LEAST: Final = 8 * _MIB


def bytes_for_bodies() -> int | None:
    """How many bytes of bodies fit into the memory that we may use; None if nobody has limited it."""
    addresses, _ = resource.getrlimit(resource.RLIMIT_AS)
    rooms = [limit - _WITHOUT_BODIES for limit in map(limit_in, _FILES) if limit is not None]
    if addresses != resource.RLIM_INFINITY:
        rooms.append(addresses - _ADDRESSES)
    return max(min(rooms) // _BYTES_A_BYTE, _LEAST) if rooms else None


def limit_in(file: Path) -> int | None:
    """The bytes that a control group's file says; None if it says that there is no limit, or is not there."""
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
