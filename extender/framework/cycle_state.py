"""CycleState: the scratch of one scheduling cycle; it dies with the cycle."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

T = TypeVar("T")


class NotFoundError(LookupError):
    """Nothing was written under the key in this cycle. Upstream: fwk.ErrNotFound."""


@final
class StateKey(Generic[T]):
    """A key and the type of what is kept under it. A plugin makes its keys once, at module level."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


@final
class CycleState:
    """What plugins computed for this pod in PreFilter and PreScore, read back in Filter and Score.

    Upstream: pkg/scheduler/framework/cycle_state.go (v1.36.2). There is no Clone: hypotheses live in `Rows`, not in here.
    """

    __slots__ = ("_values", "observe_plugin", "pod_signature", "skip_filter_plugins", "skip_score_plugins")

    def __init__(self) -> None:
        self._values: dict[StateKey[Any], Any] = {}
        self.pod_signature = b""
        """Equal for pods with equal spec, labels, annotations and namespace; empty where nobody asked for it."""
        self.observe_plugin: Callable[[float, str, str, str], None] | None = None
        """Is told (seconds, plugin, extension point, status) of everything that plugins are asked; None where nobody wants to know."""
        self.skip_filter_plugins: frozenset[str] = frozenset()
        """Plugins whose PreFilter said Skip: their Filter does not run."""
        self.skip_score_plugins: frozenset[str] = frozenset()
        """Plugins whose PreScore said Skip: their Score does not run."""

    def write(self, key: StateKey[T], value: T) -> None:
        """Keep a value for the rest of the cycle."""
        self._values[key] = value

    def read(self, key: StateKey[T]) -> T:
        """The value kept under the key.

        Raises:
            NotFoundError: nothing was.
        """
        try:
            value: T = self._values[key]
        except KeyError:
            raise NotFoundError("not found") from None
        return value

    def find(self, key: StateKey[T]) -> T | None:
        """The value kept under the key, None if there is none."""
        value: T | None = self._values.get(key)
        return value
