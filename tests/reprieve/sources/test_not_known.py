"""What is said of a cluster that is known in part is true of the whole one."""

import random
from collections.abc import Sequence
from typing import Final

import pytest

from extender import rules
from extender.answers.catalogue import ExplainQuestion
from extender.answers.questions import Questions
from extender.answers.types import Explanation
from extender.engine.cache.cluster import Cluster
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import replaced
from extender.values.objects.kinds import KINDS, NODES, PODS, kind_of
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from reprieve.sources.listing import Gap, Gaps
from reprieve.sources.not_known import DEPENDANTS, Narrowing
from reprieve.sources.retelling import Retelling
from tests.kit.examples import examples
from tests.kit.random_claims import with_claims
from tests.kit.random_storage import random_cluster_with_volumes

HOME: Final = "default"


def test_something_hangs_on_every_kind() -> None:
    assert {plural for dependant in DEPENDANTS for plural in dependant.plurals} == {kind.plural for kind in KINDS}


def narrowed(objects: Sequence[HasMetadata], gaps: Gaps) -> tuple[Questions, Retelling]:
    cluster = Cluster()
    for kind in KINDS:
        for obj in objects:
            gap = gaps.get(kind.plural)
            if kind_of(obj) is kind and (gap is None or obj.metadata.namespace in gap.namespaces):
                cluster.changed(None, obj)
    narrowing = Narrowing(gaps, cluster)
    cluster.narrow = narrowing
    questions = Questions(Configuration(), cluster, rules.trial)
    return questions, Retelling(questions, narrowing)


async def explained(objects: Sequence[HasMetadata], gaps: Gaps, pod: Pod) -> Explanation:
    questions, retold = narrowed(objects, gaps)
    question = ExplainQuestion(namespace=pod.namespace, pod=pod.name)
    answer = await retold(question, await questions.explain(pod.namespace, pod.name))
    assert isinstance(answer, Explanation)
    return answer


def random_world(chance: random.Random) -> list[HasMetadata]:
    """Pods are in two namespaces; those that wait are at home."""
    cluster = random_cluster_with_volumes(chance)
    pods = [
        replaced(pod, metadata=replaced(pod.metadata, namespace=chance.choice((HOME, "other")))) for pod in cluster.pods
    ]
    return with_claims([*cluster.nodes, *cluster.objects, *pods, cluster.pod, *cluster.arrivals], chance)


def random_gaps(chance: random.Random) -> dict[str, Gap]:
    """Pods may always be listed at home: otherwise there is none to ask about."""
    missing_kinds = [
        kind for kind in KINDS if kind is not NODES and not kind.gate and chance.random() < chance.choice((0.2, 0.6))
    ]
    return {
        kind.plural: Gap(
            kind,
            "no",
            frozenset([HOME]) if kind is PODS or (kind.is_namespaced and chance.random() < 0.5) else frozenset(),
        )
        for kind in missing_kinds
    }


@pytest.mark.parametrize("seed", range(examples(40)))
async def test_what_is_said_of_a_part_is_true_of_the_whole(seed: int) -> None:
    """A fit is a fit, a refusal is a refusal, by the same plugins; nothing is said of what is not known."""
    chance = random.Random(seed)
    objects, gaps = random_world(chance), random_gaps(chance)
    for pod in [obj for obj in objects if isinstance(obj, Pod) and not obj.spec.node_name]:
        whole, part = await explained(objects, {}, pod), await explained(objects, gaps, pod)
        if "not known whether" in part.summary:
            assert (part.message, part.preemption) == ("", None)
            assert part.feasible_nodes == 0
        else:
            assert bool(part.feasible_nodes) == bool(whole.feasible_nodes), (part.summary, whole.summary, sorted(gaps))
        for fix in part.fixes:
            assert fix in whole.fixes, (fix.text, [whole_fix.text for whole_fix in whole.fixes], sorted(gaps))
        if part.preemption is not None and part.preemption.node:
            assert whole.preemption == part.preemption, sorted(gaps)
