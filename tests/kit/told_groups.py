"""A scheduler with the gates of pod groups on, without a cluster behind it, and groups that are tried in it."""

from collections.abc import Callable, Iterable
from typing import Final, final

from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.preemption.pod_group_victims import GroupVictims
from extender.engine.runtime.registry import Registry
from extender.engine.scheduler.pod_group_preemption import find_victims
from extender.engine.scheduler.pod_group_trial import PodGroupTrial
from extender.engine.scheduler.schedule_pod import SchedulingAlgorithm
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from extender.values.objects.grouping import PodGroup
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.kit.objects import GROUP_GATES
from tests.kit.told_scheduler import ToldScheduler

NO_PROFILES: Final = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@final
class ToldGroups(ToldScheduler):
    """Call it where a loop runs."""

    def __init__(self, *objects: HasMetadata, cluster: Cluster | None = None, seed: int = 0) -> None:
        configuration = load(NO_PROFILES, FeatureGates.of(GROUP_GATES))
        super().__init__(configuration=configuration, cluster=cluster, seed=seed, plugins=Registry(IN_TREE, ()))
        self.comes(*objects)

    def trial(self, group: PodGroup, pods: Iterable[Pod]) -> PodGroupTrial:
        framework, world = self.alone.frameworks["default-scheduler"], self.alone.world
        return PodGroupTrial(world, SchedulingAlgorithm(), framework, (group.namespace, group.name), group, list(pods))

    async def victims(
        self,
        group: PodGroup,
        pods: Iterable[Pod],
        *,
        one_by_one: bool = False,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> GroupVictims:
        """
        Arguments:
            clock: by default it stands still, so that no search ends for want of time.
        """
        return await find_victims(self.trial(group, pods), group, one_by_one=one_by_one, clock=clock)
