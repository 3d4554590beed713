"""Golden files of `reprieve verify`: where the pods of each rule went, to be compared with another configuration or
version.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, final

import msgspec
import yaml

from api.fatal_errors import MisuseError, StartUpError
from extender.answers.what_if.verification import PodDestinations, UnmetExpectation
from extender.values.golang.json import plain
from extender.values.golang.yaml import YamlError, read_yaml

_HEAD: Final = "# Where pods went; `reprieve verify --golden FILE --update` writes this file.\n"


@final
class GoldenFile:
    """The decisions in a file, of each rule by the rule's own file and name."""

    def __init__(self, path: Path, *, is_updated: bool) -> None:
        """Reads the file, unless it is to be written.

        Raises:
            MisuseError: there is no such file, or it is no golden file.
        """
        self.is_updated: Final = is_updated
        self._path = path
        self._kept: Mapping[str, PodDestinations] = {} if is_updated else _read(path)
        self._made: dict[str, PodDestinations] = {}

    def unmet(self, rule: Path, name: str, made: PodDestinations, *, again: bool) -> Iterator[UnmetExpectation]:
        """Yields what is not as the file has it; nothing if it is to be written.

        Arguments:
            rule: the file of the rule.
            again: whether the rule was played before, in another version, so that its decisions are not those to write.
        """
        key = f"{Path(os.path.relpath(rule.absolute(), self._path.absolute().parent)).as_posix()}: {name}"
        if self.is_updated and not again:
            self._made[key] = made
        kept = (self._made if self.is_updated else self._kept).get(key)
        if kept is None:
            yield UnmetExpectation(f"decisions in {self._path}", "it has none of this rule; --update writes them")
            return
        for pod in sorted({*kept.pods, *made.pods}):
            before, now = kept.pods.get(pod, "not there"), made.pods.get(pod, "not there")
            if before != now:
                yield UnmetExpectation(f"{pod}: {before}, as in {self._path}", now)
        for pod in sorted({*kept.evicted, *made.evicted}):
            left, leaves = kept.evicted.get(pod), made.evicted.get(pod)
            if left != leaves:
                yield UnmetExpectation(f"{pod}: {_from(left)}, as in {self._path}", _from(leaves))

    def write(self) -> None:
        """Writes what was decided, if the file is to be written.

        Raises:
            StartUpError: it cannot be written.
        """
        if not self.is_updated:
            return
        try:
            self._path.write_text(
                _HEAD + yaml.safe_dump(msgspec.to_builtins(self._made), allow_unicode=True, width=10_000),
                encoding="utf-8",
            )
        except OSError as exc:
            raise StartUpError(f"{self._path}: {(exc.strerror or str(exc)).lower()}") from exc


def _from(node: str | None) -> str:
    return "not evicted" if node is None else f"evicted from {node}"


def _read(path: Path) -> dict[str, PodDestinations]:
    try:
        return msgspec.convert(
            plain(read_yaml(path.read_text(encoding="utf-8")).value) or {}, dict[str, PodDestinations]
        )
    except FileNotFoundError as exc:
        raise MisuseError(f"{path}: no such file; --update writes it") from exc
    except (OSError, UnicodeDecodeError, YamlError, msgspec.ValidationError) as exc:
        raise MisuseError(f"{path}: {' '.join(str(exc).split())}") from exc
