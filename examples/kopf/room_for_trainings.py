"""A kopf operator that tells each Training, a custom resource, whether its pod fits now: `pip install kopf`

    kubectl apply -f examples/kopf/training-crd.yaml
    kopf run --all-namespaces examples/kopf/room_for_trainings.py

The cluster is followed once for all of them; a question lists nothing.
"""

from contextlib import AsyncExitStack

import kopf

from reprieve import Cluster, ReprieveError


@kopf.on.startup()
async def begin(memo: kopf.Memo, **_: object) -> None:
    memo.open = AsyncExitStack()
    memo.follower = await memo.open.enter_async_context(Cluster.follow())


@kopf.on.cleanup()
async def end(memo: kopf.Memo, **_: object) -> None:
    await memo.open.aclose()


@kopf.timer("example.com", "v1", "trainings", interval=10.0)
async def tell(
    memo: kopf.Memo, name: str, namespace: str | None, spec: kopf.Spec, patch: kopf.Patch, **_: object
) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec["pod"]}
    try:
        with memo.follower.cluster.trial() as trial:
            answer = trial.preempt(pod)
    except ReprieveError as exc:
        raise kopf.PermanentError(str(exc)) from exc
    victims = [victim.pod.key for victim in answer.victims]
    patch.status["room"] = {"node": answer.node, "victims": victims, "message": answer.message}
