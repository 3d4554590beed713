"""The pods of a cluster at one moment, which arrive anew at its nodes."""

from pathlib import Path
from typing import final

from extender.answers.trial import belongs_to_node, recreated
from extender.rules.state_file import load_state
from extender.values.objects.decoding import DecodeError, convert, replaced
from extender.values.objects.devices import ResourceClaim, ResourceClaimStatus
from extender.values.objects.kinds import KINDS
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.reasons import InputError, in_one_line
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.workload import Workload, WorkloadError

_KIND_OF_NAME = {kind.name: kind for kind in KINDS}


@final
class DumpedWorkload(Workload):
    """What `kubectl get -o json` printed. Pods of DaemonSets and of kubelets stay on their nodes; all others arrive at
    once, in the order of the file with seed 0, or in one shuffled by the seed.
    """

    def __init__(self, path: Path) -> None:
        """Raises WorkloadError if the file cannot be read, or has no nodes."""
        self.name = path.name
        try:
            objects: list[HasMetadata] = [
                convert(_KIND_OF_NAME[kind].type, obj)
                for obj in load_state(path)
                if (kind := str(obj.get("kind"))) in _KIND_OF_NAME
            ]
        except (InputError, DecodeError) as exc:
            raise WorkloadError(f"{path}: {in_one_line(exc)}") from exc
        if not any(isinstance(obj, Node) for obj in objects):
            raise WorkloadError(f"{path}: the dump has no nodes")
        pods = [obj for obj in objects if isinstance(obj, Pod) and obj.status.phase not in ("Succeeded", "Failed")]
        self._pods = [recreated(pod) for pod in pods if not belongs_to_node(pod)]
        self._there = [_unallocated(obj) for obj in objects if not isinstance(obj, Pod)]
        self._there += [pod for pod in pods if belongs_to_node(pod) and pod.spec.node_name]

    async def play(self, scene: Scene) -> None:
        scene.put(*self._there)
        pods = list(self._pods)
        if scene.seed:
            scene.rng.shuffle(pods)
        scene.expect_pods(len(pods))
        scene.create_pods(pods)
        await scene.settle()


def _unallocated(obj: HasMetadata) -> HasMetadata:
    return replaced(obj, status=ResourceClaimStatus()) if isinstance(obj, ResourceClaim) else obj
