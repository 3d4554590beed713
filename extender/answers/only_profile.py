"""One profile for everybody: another scheduler asks the extender, whose profile may have any name."""

from collections.abc import Iterator, Mapping
from typing import final

from extender.runtime.framework import Framework


@final
class OnlyProfile(Mapping[str, Framework]):
    """A framework that is found under every scheduler name.

    It is *in* here under its own name alone: as for the live engine, only pods of that name are counted where they are promised room.
    """

    def __init__(self, framework: Framework) -> None:
        self._framework = framework

    def __getitem__(self, scheduler_name: str) -> Framework:
        return self._framework

    def __contains__(self, scheduler_name: object) -> bool:
        return scheduler_name == self._framework.profile_name

    def __iter__(self) -> Iterator[str]:
        return iter((self._framework.profile_name,))

    def __len__(self) -> int:
        return 1
