"""What if: these objects were created, those nodes went away, the configuration were another one.

The answer is worked out by the scheduler's own algorithm on a cluster that nobody else has, and may be worked out in a thread.
"""

import asyncio
import dataclasses
import random
from collections.abc import Mapping
from typing import Final, final

import msgspec

from extender.answers.admission import Admits
from extender.answers.manifests import ManifestError, take_in
from extender.answers.naming_nodes import put_on_their_nodes
from extender.answers.only_profile import OnlyProfile, stood_in
from extender.answers.rolling import Rolling, play_through
from extender.answers.simulation import STEPS, Simulation
from extender.answers.types import WhatIf, WhatIfRequest
from extender.answers.what_if_summary import summary
from extender.cache.cluster import Cluster
from extender.concurrency.abandoned import IsWanted, always_wanted
from extender.config.configuration import Configuration
from extender.config.loading import load
from extender.evaluation.evaluate import trying_every_node
from extender.plugins import IN_TREE
from extender.runtime.framework import Framework
from extender.runtime.registry import Registry

MAX_NODES: Final = 1_000
"""Nodes that can be drained or removed at a time."""
MAX_PROFILES: Final = 100
"""Profiles of a configuration that is tried."""


@final
class WhatIfError(Exception):
    """The question cannot be answered; the message says why."""


def what_if(
    cluster: Cluster,
    configuration: Configuration,
    request: WhatIfRequest,
    admits: Admits,
    *,
    for_everybody: bool = False,
    steps: int = STEPS,
    is_wanted: IsWanted = always_wanted,
) -> WhatIf:
    """What would become of every pod concerned. Equal questions about equal clusters have equal answers.

    Arguments:
        cluster: is changed: hand over a fork.
        configuration: of the scheduler that decides, unless the request brings another one.
        admits: makes the API server that the request's objects pass through.
        for_everybody: see `simulated_frameworks`.
        steps: what the simulation may cost.
        is_wanted: whether somebody waits for the answer.

    Raises:
        WhatIfError: an object cannot be created, or a node that should go is not there.
        AbandonedError: nobody waits any more.
        ConfigErrors: the configuration is wrong.
    """
    if request.configuration is not None:
        configuration = load(msgspec.json.encode(request.configuration))
        if len(configuration.profiles) > MAX_PROFILES:
            raise WhatIfError(f"more than {MAX_PROFILES} profiles cannot be tried at a time")
    frameworks = simulated_frameworks(configuration, cluster, for_everybody=for_everybody)
    simulation = Simulation(cluster, frameworks, steps, is_wanted)
    further, notes = play(simulation, request, admits)
    placements, evictions, loops = simulation.placements, simulation.evictions, simulation.loops
    return WhatIf(
        summary=summary(placements, evictions, loops, further),
        placements=placements,
        evictions=evictions,
        loops=loops,
        unplaced=sum(not placement.node for placement in placements),
        is_complete=simulation.is_complete,
        notes=(*stood_in(frameworks), *notes),
    )


def play(simulation: Simulation, request: WhatIfRequest, admits: Admits) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Let happen what the request says, and all that follows from it. Its configuration is not looked at.

    Returns:
        Sentences: what placements and evictions do not show, and what was taken for granted.

    Raises:
        WhatIfError: an object cannot be created, or a node that should go is not there.
    """
    cluster = simulation.cluster
    pending = [pod for pod in cluster.pending.values() if not cluster.cache.is_assumed(pod)] if request.include_pending else []
    try:
        taken = take_in(cluster, request.create, admits())
    except ManifestError as exc:
        raise WhatIfError(str(exc)) from exc
    going = [*request.remove_nodes, *request.drain_nodes]
    for name in going:
        if name not in cluster.nodes:
            raise WhatIfError(f'node "{name}" not found')
    if len(going) > MAX_NODES:
        raise WhatIfError(f"more than {MAX_NODES} nodes cannot go at a time")
    named = put_on_their_nodes(cluster, taken.fixed)
    for pod in taken.going:
        simulation.withdraw(pod, "scaled down")
    rollouts = [Rolling(simulation, *each) for each in taken.rollouts]
    for rollout in rollouts:
        rollout.begin()
    for pod in taken.daemons:
        simulation.submit(pod, "created")
    for pod in pending:
        if cluster.pending.get(pod.uid) is pod:
            simulation.submit(pod, "pending")
    for pod in taken.pods:
        simulation.submit(pod, "created")
    for name in dict.fromkeys(request.remove_nodes):
        simulation.remove_node(name)
    for name in dict.fromkeys(request.drain_nodes):
        if name in cluster.nodes:
            simulation.drain_node(name)
    asyncio.run(play_through(simulation, rollouts))
    stopped = tuple(outcome for rollout in rollouts if (outcome := rollout.outcome) and simulation.is_complete)
    missing = (f"ResourceClaimTemplate {name} is not known here: put it into the file as well" for name in taken.missing_templates)
    return (*named, *stopped), (*taken.notes, *missing)


def simulated_frameworks(configuration: Configuration, cluster: Cluster, *, for_everybody: bool = False) -> Mapping[str, Framework]:
    """Frameworks of its own for a cluster, which leave nothing to chance, and no node out.

    Arguments:
        for_everybody: a profile that is the only one decides about pods of every scheduler name, as it does when another scheduler asks.

    Raises:
        ConfigErrors: the configuration is wrong.
    """
    thorough = trying_every_node(configuration)
    profiles = tuple(dataclasses.replace(profile, percentage_of_nodes_to_score=None) for profile in thorough.profiles)
    thorough = dataclasses.replace(thorough, profiles=profiles)
    frameworks = Registry(IN_TREE).make_frameworks(thorough, random.Random(0), live=cluster.cache)
    return OnlyProfile(*frameworks.values()) if for_everybody and len(frameworks) == 1 else frameworks
