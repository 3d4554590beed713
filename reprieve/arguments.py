"""What callers of the library give, and the error in one line when it cannot be used."""

import asyncio
import operator
import re
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from extender.values.config.configuration import ConfigErrors
from extender.values.objects.node import Taint
from extender.values.reasons import InputError, ReprieveError
from reprieve.sources.configurations import with_fix
from reprieve.sources.manifest_files import ENDINGS, manifests_in

__all__ = ["Objects", "ReprieveError"]

T = TypeVar("T")

Objects = str | Path | Mapping[str, Any] | Iterable[str | Mapping[str, Any]]
"""A pod by `namespace/name` (without `default/` as well); a file: a Path, or a name that ends in .yaml, .yml or .json;
a folder of them, as a Path; a text of several lines, as in a file; an object, as a mapping; or several names, or
several objects.
"""

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PART: Final = r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?"
_SPEC: Final = re.compile(rf"(?P<key>{_PART})(=(?P<value>({_PART})?))?(:(?P<effect>\w+))?(?P<off>-)?")


@contextmanager
def in_words() -> Iterator[None]:
    """Raises a ReprieveError for input that cannot be used."""
    try:
        yield
    except ConfigErrors as exc:
        raise ReprieveError(with_fix(exc)) from exc
    except InputError as exc:
        raise ReprieveError(exc) from exc
    except RecursionError as exc:
        raise ReprieveError("an object is nested too deeply, or contains itself") from exc


def pods_or_objects(what: Objects) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
    """Returns names of pods, or objects as they were given."""
    if isinstance(what, Path) or (isinstance(what, str) and ("\n" in what or what.endswith(ENDINGS))):
        return (), manifests_in(what)
    members = [what] if isinstance(what, str | Mapping) else several(what)
    names = [member for member in members if isinstance(member, str)]
    objects = [member for member in members if isinstance(member, Mapping)]
    if max(len(names), len(objects)) < len(members):
        raise ReprieveError(f"{what!r:.80}: give a pod's name, a file, an object, or several names or several objects")
    for kind in (obj.get("kind", "") for obj in objects):
        line(kind, "a kind of objects")
    return [line(name, "a pod's name") for name in names], objects


def several(what: object) -> list[Any]:
    """Returns the members of an iterable; anything else is the only member."""
    return [*what] if isinstance(what, Iterable) and not isinstance(what, str | bytes) else [what]


def plain(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of an object, which consists of what JSON has, for an API server that fills it in."""
    copied: dict[str, Any] = _copied(obj)
    return copied


def _copied(value: Any) -> Any:
    # copy.deepcopy takes four times as long, and takes everything.
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ReprieveError(f"{key!r:.80} is no name of a field: give a text")
        return {key: _copied(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(member) for member in value]
    raise ReprieveError(f"{value!r:.80} is a {type(value).__name__}, which no object of an API server holds")


def names_of(names: Iterable[object], what: str) -> list[str]:
    """Returns names that are given one by one or in lists."""
    texts = [text for name in names for text in several(name)]
    return [line(text, what) for text in texts]


def line(name: object, what: str) -> str:
    """Returns a name, which is a text of one line."""
    if not isinstance(name, str):
        raise ReprieveError(f"{name!r:.80} is not {what}: give a text")
    if "\n" in name:
        raise ReprieveError(f"{name!r:.80} is not {what}: a text of several lines; give a file, or objects")
    return name


def file_of(name: object) -> Path:
    """Returns the path of a file or folder, given as a Path or by its name."""
    return Path(line(str(name) if isinstance(name, Path) else name, "a file's name"))


def whole(number: object, what: str, minimum: int) -> int:
    """Returns a whole number of at least the minimum."""
    try:
        integer = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        integer = minimum - 1
    if isinstance(number, bool) or integer < minimum:
        raise ReprieveError(f"{number!r:.80} {what}: give a whole number of at least {minimum}")
    return integer


def gates_of(gates: object) -> dict[str, bool]:
    """Returns feature gates by name; none for None."""
    if gates is None:
        return {}
    if not isinstance(gates, Mapping):
        raise ReprieveError(f"{gates!r:.80} are no feature gates: give a dictionary with True or False for each name")
    is_on_by_gate = {line(name, "a feature gate's name"): is_on for name, is_on in gates.items()}
    for name, is_on in is_on_by_gate.items():
        if not isinstance(is_on, bool):
            raise ReprieveError(f"feature gate {name}: {is_on!r:.80} is neither True nor False")
    return is_on_by_gate


def outcome_of(waits: Coroutine[Any, Any, T]) -> T:
    """Runs the coroutine, also in a thread with a running loop, such as a notebook's."""
    outcomes: list[T] = []

    async def keep() -> None:
        # A task that returned the outcome would have it in its repr, which Python up to 3.12 formats twice for a signal
        # handler that asyncio.run sets: seconds, for an outcome with arrays along all nodes.
        outcomes.append(await waits)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(keep())
    else:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(keep())).result()
    return outcomes[0]


def tainted(taints: Sequence[Taint], specs: Iterable[str]) -> list[Taint]:
    """Returns the taints of a node after `kubectl taint --overwrite` with these words.

    Upstream: kubectl/pkg/cmd/taint/utils.go, parseTaints, parseTaint, reorganizeTaints.
    """
    remaining = [*taints]
    for spec in specs:
        parts = _SPEC.fullmatch(spec)
        if parts is None or (parts["off"] and parts["value"]) or not (parts["effect"] or parts["off"]):
            raise ReprieveError(f"invalid taint spec: {spec}; write key=value:Effect, key:Effect, key:Effect- or key-")
        key, effect = parts["key"], parts["effect"]
        if effect and effect not in _EFFECTS:
            raise ReprieveError(f"invalid taint effect: {effect}, unsupported; it is one of {', '.join(_EFFECTS)}")
        unequal = [taint for taint in remaining if taint.key != key or (effect and taint.effect != effect)]
        if parts["off"] and len(unequal) == len(remaining):
            raise ReprieveError(f'taint "{spec[:-1]}" not found')
        remaining = unequal if parts["off"] else [*unequal, Taint(key=key, value=parts["value"] or "", effect=effect)]
    return remaining
