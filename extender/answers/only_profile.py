"""One profile for everybody: another scheduler asks the extender, whose profile may have any name.

Of a cluster in a file nobody knows who decides there; its pods are looked at in the same way. Answers say so: `stood_in`.
"""

from collections.abc import Iterator, Mapping
from typing import Final, final

from extender.runtime.framework import Framework


@final
class OnlyProfile(Mapping[str, Framework]):
    """A framework that is found under every scheduler name.

    It is *in* here under its own name alone: as for the live engine, only pods of that name are counted where they are promised room.

    Attributes:
        others: names of other schedulers under which it was looked up. State.
    """

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self.others: Final[set[str]] = set()

    def __getitem__(self, scheduler_name: str) -> Framework:
        if scheduler_name != self._framework.profile_name:
            self.others.add(scheduler_name)
        return self._framework

    def __contains__(self, scheduler_name: object) -> bool:
        return scheduler_name == self._framework.profile_name

    def __iter__(self) -> Iterator[str]:
        return iter((self._framework.profile_name,))

    def __len__(self) -> int:
        return 1


def stood_in(frameworks: Mapping[str, Framework]) -> tuple[str, ...]:
    """Notes of an answer for which a profile was used in place of others."""
    if not isinstance(frameworks, OnlyProfile) or not frameworks.others:
        return ()
    (profile,), others = frameworks, sorted(frameworks.others)
    who = f"another scheduler ({others[0]}) decides" if len(others) == 1 else f"other schedulers ({', '.join(others)}) decide"
    return (f"{who} about pods looked at here; this was worked out by the profile {profile}",)
