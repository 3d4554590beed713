"""Frameworks that only answer questions: no scheduler decides with them, so that a question disturbs no decision."""

import random
from collections.abc import Iterator, Mapping
from typing import Final, final

from extender.engine.cache.cluster import Cluster
from extender.engine.framework import Plugin
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.registry import Registry
from extender.values.config.configuration import Configuration


def simulated_frameworks(
    configuration: Configuration,
    cluster: Cluster,
    *,
    plugins: Mapping[str, type[Plugin]] | None = None,
    for_everybody: bool = False,
    may_defer: bool = False,
) -> Mapping[str, Framework]:
    """Returns frameworks for a copy of a cluster. They break ties without chance, and evaluate every node.

    `plugins` come beside those of installed distributions. `for_everybody`: an only profile answers for pods of every
    scheduler name. `may_defer`: the caller does `LongWork`. Raises ConfigErrors.
    """
    frameworks = Registry(IN_TREE, also=plugins).make_frameworks(
        configuration, random.Random(0), live=cluster.cache, is_exhaustive=True, may_defer=may_defer
    )
    cluster.narrow(frameworks.values())
    return SingleProfile(*frameworks.values()) if for_everybody and len(frameworks) == 1 else frameworks


@final
class SingleProfile(Mapping[str, Framework]):
    """A framework that is found under every scheduler name.

    It stands in where the deciding scheduler is not known: kube-scheduler asks the extender on behalf of profiles of
    any name, and a dump does not name its scheduler. Only its own name is *in* the mapping, because nominations count
    for pods of that name alone, as in the live engine.
    """

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self.others: Final[set[str]] = set()
        """Names of other schedulers under which it was looked up."""

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


def stand_in_notes(frameworks: Mapping[str, Framework]) -> tuple[str, ...]:
    """Returns the notes of an answer in which one profile stood in for others."""
    if not isinstance(frameworks, SingleProfile) or not frameworks.others:
        return ()
    (profile,), other_names = frameworks, ", ".join(sorted(frameworks.others))
    is_one = len(frameworks.others) == 1
    who = f"another scheduler ({other_names}) decides" if is_one else f"other schedulers ({other_names}) decide"
    return (f"{who} about some of these pods; the answer was computed with the profile {profile}",)
