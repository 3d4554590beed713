"""Names of nodes, kept once for all that was decided while they were numbered the same way."""

from typing import Final, final

BYTES_A_NAME: Final = 57
"""Of an empty string, and a reference to it."""
NUMBERINGS: Final = 2
"""That are recognised again: of the cluster, and of what another scheduler sends along with its questions."""


@final
class NodeNames:
    """The names along axis N."""

    __slots__ = ("names", "size", "users")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.users = 0
        """How many of the kept arrays are about these nodes."""
        self.size = sum(map(len, names)) + BYTES_A_NAME * len(names)
        """Bytes, about: the names may outlive the nodes."""


@final
class Naming:
    """The names of the last snapshots' nodes, and how much memory all names in use take."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes, about, of names that are in use."""
        # Each with the index that it was made from: as long as that is the snapshot's, the nodes are numbered as before.
        self._last: list[tuple[dict[str, int], NodeNames]] = []

    def of(self, index: dict[str, int]) -> NodeNames:
        """The names of the nodes.

        Arguments:
            index: of a snapshot; see `NodeColumns.index`.
        """
        for known, names in self._last:
            if known is index:
                return names
        made = NodeNames(tuple(index))
        self._last = [(index, made), *self._last[: NUMBERINGS - 1]]
        return made

    def used(self, names: NodeNames) -> None:
        """One more is about these."""
        if not names.users:
            self.size += names.size
        names.users += 1

    def unused(self, names: NodeNames) -> None:
        """One that was about these is gone."""
        names.users -= 1
        if not names.users:
            self.size -= names.size
