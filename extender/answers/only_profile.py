"""One profile for everybody: another scheduler asks the extender, whose profile may have any name."""

from collections.abc import Iterator, Mapping
from typing import final

from extender.runtime.framework import Framework


@final
class OnlyProfile(Mapping[str, Framework]):
    """A framework that is found under every scheduler name."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework

    def __getitem__(self, scheduler_name: str) -> Framework:
        return self._framework

    def __contains__(self, scheduler_name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter((self._framework.profile_name,))

    def __len__(self) -> int:
        return 1
