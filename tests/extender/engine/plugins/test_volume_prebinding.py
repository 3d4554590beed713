"""PreBind writes what Reserve assumed, and waits until the volume controller and the provisioners have bound it."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from extender.engine.framework import (
    PLUGIN_METRICS,
    SKIP,
    SUCCESS,
    CallConflict,
    CallError,
    CycleState,
    Handle,
    PluginMetrics,
    Status,
    error,
)
from extender.engine.framework.storage_calls import PatchPersistentVolume, PatchPersistentVolumeClaim
from extender.engine.plugins.volume_binding.plugin import VolumeBinding
from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot import Rows
from extender.testing import PodBuilder, label_term, make_framework, make_node, make_pod
from extender.values.config.plugin_args import VolumeBindingArgs
from extender.values.objects.claims import BIND_COMPLETED_ANNOTATION, SELECTED_NODE_ANNOTATION
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import HOSTNAME_LABEL
from extender.values.objects.storage import PersistentVolumeClaim
from tests.kit.reservations import Reservations
from tests.kit.storage import make_claim, make_class, make_csi_node, make_volume
from tests.kit.tables import cases

LOCAL = make_class("local", provisioner="kubernetes.io/no-provisioner")
ON_A, ON_B = ([label_term(HOSTNAME_LABEL, "In", node)] for node in "ab")
OUT_OF_REACH = 'node affinity doesn\'t match node "a": no matching NodeSelectorTerms'
STATIC = (
    LOCAL,
    make_claim("c", storage_class="local", version="5"),
    make_volume("v", storage_class="local", affinity=ON_A, version="7"),
)
DYNAMIC = (make_class(), make_claim("c", version="5"))


class Binding(Reservations):
    """A pod on its way to node `a`: its volumes are reserved, and PreBind is next."""

    def __init__(
        self,
        *objects: HasMetadata,
        claims: tuple[str, ...] = ("c",),
        seconds: int = 10,
        late: bool = False,
        **more: Any,
    ) -> None:
        def make(_: object, handle: Handle) -> VolumeBinding:
            return VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=seconds), handle)

        labels = {HOSTNAME_LABEL: "a", **more.get("labels", {})}
        super().__init__(make, make_node("a").label(labels), *objects, late=late)
        (self.plugin,) = self.framework.plugins.pre_bind
        self.pod = reduce(PodBuilder.claim, claims, make_pod("p").uid("pod")).obj()
        self.state: CycleState = self.reserved(self.pod)
        self.assumed = replaced(self.pod, spec=replaced(self.pod.spec, node_name="a"))
        self.cache.assume_pod(self.assumed)

    def prepared(self, *later: tuple[float, Callable[[], None]]) -> tuple[Status, float]:
        return self.pre_bind(self.state, self.assumed, *later)

    def feasible(self, claim: str) -> list[str]:
        """Where another pod with this claim could go now."""
        snapshot, pod = self.cache.update_snapshot(), make_pod("other").uid("other").claim(claim).obj()
        state, rows = Cycle(self.framework, snapshot, pod), Rows.of(snapshot)
        state.run_pre_filter_plugins()
        return rows.take(state.run_filter_plugins(rows).ok).names

    def claim(self) -> PersistentVolumeClaim:
        return self.cache.objects.pvcs[("default", "c")]

    def volume_changes(self, **spec: Any) -> None:
        volume = self.cache.objects.pvs["v"]
        self.cache.objects.pvs["v"] = replaced(volume, spec=replaced(volume.spec, **spec))

    def controller_binds(self, volume: str = "v") -> None:
        claim = self.claim()
        annotations = {**claim.metadata.annotations, BIND_COMPLETED_ANNOTATION: "yes"}
        self.cache.objects.pvcs[("default", "c")] = replaced(
            claim,
            metadata=replaced(claim.metadata, annotations=annotations, resource_version="2000"),
            spec=replaced(claim.spec, volume_name=volume),
        )


def test_a_volume_is_written_with_its_claim_and_bound_by_the_controller() -> None:
    """The volume names the claim; the controller is looked after every second."""
    binding = Binding(*STATIC)

    status, seconds = binding.prepared((2.5, binding.controller_binds))

    (call,) = binding.writes.calls
    assert isinstance(call, PatchPersistentVolume)
    assert (call.name, call.resource_version, call.bound_by_controller) == ("v", "7", True)
    assert (call.claim.name, call.claim.uid) == ("c", "uid-c")
    assert status == SUCCESS
    assert seconds == 3


def test_a_claim_is_written_with_the_node_and_provisioned() -> None:
    binding = Binding(*DYNAMIC)

    def provisioned() -> None:
        binding.cache.objects.pvs["made"] = make_volume("made", claim="c", affinity=ON_A)
        binding.controller_binds("made")

    status, _ = binding.prepared((0.5, provisioned))

    assert binding.writes.calls == [PatchPersistentVolumeClaim("default", "c", "uid-c", "5", "a")]
    assert status == SUCCESS


def test_a_pod_whose_claims_are_bound_has_nothing_to_do() -> None:
    binding = Binding(make_class(), make_claim("c", volume="v"), make_volume("v", claim="c"))

    pre_flight = binding.plugin.pre_bind_pre_flight(binding.state, binding.pod, "a")
    status, seconds = binding.prepared()

    assert (pre_flight.status, pre_flight.allow_parallel) == (SKIP, True)
    assert (status, seconds, binding.writes.calls) == (SUCCESS, 0, [])


def test_pre_flight_of_a_pod_with_claims_to_bind() -> None:
    binding = Binding(*STATIC)

    pre_flight = binding.plugin.pre_bind_pre_flight(binding.state, binding.pod, "a")

    assert (pre_flight.status, pre_flight.allow_parallel) == (SUCCESS, True)


def test_pre_bind_without_reserve_is_an_error() -> None:
    binding = Binding(*STATIC)
    binding.state = CycleState()

    pre_flight = binding.plugin.pre_bind_pre_flight(binding.state, binding.pod, "a")
    status, _ = binding.prepared()

    assert pre_flight.status == status == error('no pod volumes found for node "a"')


def test_binding_times_out() -> None:
    status, seconds = Binding(*STATIC, seconds=10).prepared()

    assert status == error("binding volumes: context deadline exceeded")
    assert seconds == 10


def test_a_refusal_by_the_api_server_is_an_error_with_its_message() -> None:
    binding = Binding(*STATIC)
    binding.writes.fail(PatchPersistentVolume, CallConflict('Operation cannot be fulfilled on persistentvolumes "v"'))

    status, seconds = binding.prepared()

    assert status == error('Operation cannot be fulfilled on persistentvolumes "v"')
    assert binding.framework.shared(PLUGIN_METRICS, PluginMetrics).volume_errors == {"bind": 1}
    assert seconds == 0


def test_objects_that_were_not_written_are_no_longer_assumed() -> None:
    """Of two volumes the first was written and stays the claim's; the second is free again, for another pod."""
    two: tuple[HasMetadata, ...] = (
        LOCAL,
        *(make_claim(name, storage_class="local") for name in "cde"),
        *(make_volume(name, storage_class="local", affinity=ON_A) for name in "vw"),
    )
    binding = Binding(*two, claims=("c", "d"))
    nobody = binding.feasible("e")
    binding.writes.fail(PatchPersistentVolume, CallError("no room"), after=1)

    status, _ = binding.prepared()

    assert status == error("no room")
    assert [volume.spec.claim_ref is not None for volume in binding.cache.objects.pvs.values()] == [True, False]
    assert (nobody, binding.feasible("e")) == ([], ["a"])


def test_a_late_watch_is_waited_for() -> None:
    """What the cache shows may be older than what was written."""
    binding = Binding(*STATIC, late=True)

    status, seconds = binding.prepared((0.5, binding.controller_binds), (3.5, binding.writes.deliver))

    assert status == SUCCESS
    assert seconds == 4


def remove_pod(binding: Binding) -> None:
    binding.cache.remove_pod(binding.assumed)


def remove_node(binding: Binding) -> None:
    binding.cache.remove_node(make_node("a").label({HOSTNAME_LABEL: "a"}).obj())


def remove_volume(binding: Binding) -> None:
    del binding.cache.objects.pvs["v"]


def remove_claim(binding: Binding) -> None:
    del binding.cache.objects.pvcs[("default", "c")]


def reset_claim_ref(binding: Binding) -> None:
    binding.volume_changes(claim_ref=None)


def reset_uid(binding: Binding) -> None:
    reference = binding.cache.objects.pvs["v"].spec.claim_ref
    assert reference is not None
    binding.volume_changes(claim_ref=replaced(reference, uid=""))


def move_volume(binding: Binding) -> None:
    binding.volume_changes(node_affinity=make_volume("w", affinity=ON_B).spec.node_affinity)


@cases(
    "happens, message",
    ("the node went", remove_node, 'failed to get node "a": node "a" not found'),
    ("the pod went", remove_pod, 'pod does not exist any more: pod "p" not found'),
    ("the volume went", remove_volume, 'failed to check binding: could not find v1.PersistentVolume "v"'),
    ("the claim went", remove_claim, 'failed to check binding: could not find v1.PersistentVolumeClaim "default/c"'),
    ("the volume was taken from the claim", reset_claim_ref, 'ClaimRef got reset for pv "v"'),
    ("the volume was taken from this claim", reset_uid, 'ClaimRef got reset for pv "v"'),
    ("the volume is out of reach", move_volume, f'pv "v" {OUT_OF_REACH}'),
)
def test_final_failures_end_the_wait(happens: Callable[[Binding], None], message: str) -> None:
    binding = Binding(*STATIC)

    status, seconds = binding.prepared((1.5, lambda: happens(binding)))

    assert status == error(f"binding volumes: {message}")
    assert seconds == 2


def annotate(binding: Binding, annotations: dict[str, str], **spec: str) -> None:
    claim = binding.claim()
    binding.cache.objects.pvcs[("default", "c")] = replaced(
        claim, metadata=replaced(claim.metadata, annotations=annotations), spec=replaced(claim.spec, **spec)
    )


def provision_elsewhere(binding: Binding) -> None:
    binding.cache.objects.pvs["made"] = make_volume("made", claim="c", affinity=ON_B)
    annotate(binding, {SELECTED_NODE_ANNOTATION: "a"}, volume_name="made")


@cases(
    "happens, message",
    ("no annotation is left", lambda binding: annotate(binding, {}), 'selectedNode annotation reset for PVC "c"'),
    ("the provisioner gave up", lambda binding: annotate(binding, {"x": "y"}), 'provisioning failed for PVC "c"'),
    ("the volume was made out of reach", provision_elsewhere, f'pv "made" {OUT_OF_REACH}'),
    (
        "the claim went",
        remove_claim,
        'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/c"',
    ),
)
def test_provisioning_can_fail(happens: Callable[[Binding], None], message: str) -> None:
    binding = Binding(*DYNAMIC)

    status, _ = binding.prepared((1.5, lambda: happens(binding)))

    assert status == error(f"binding volumes: {message}")


def test_a_volume_of_the_claim_may_be_observed_late() -> None:
    binding = Binding(*DYNAMIC, seconds=5)

    status, seconds = binding.prepared(
        (0.5, lambda: binding.controller_binds("made")),
        (2.5, lambda: binding.cache.objects.pvs.__setitem__("made", make_volume("made", claim="c"))),
    )

    assert status == SUCCESS
    assert seconds == 3


def test_an_in_tree_volume_is_translated_for_a_migrated_node() -> None:
    """On a node that serves EBS volumes through CSI, the volume's zone is that of the driver, and the node is known
    there by another label.
    """
    in_tree = (LOCAL, make_claim("c", storage_class="local"), make_volume("v", storage_class="local", ebs="vol-1"))
    zonal = make_volume("w", affinity=[label_term("topology.kubernetes.io/zone", "In", "z1")]).spec.node_affinity

    def pre_bind(*objects: HasMetadata) -> Status:
        binding = Binding(*in_tree, *objects, labels={"topology.ebs.csi.aws.com/zone": "z1"})

        def bound_in_a_zone() -> None:
            binding.volume_changes(node_affinity=zonal)
            binding.controller_binds()

        return binding.prepared((1.5, bound_in_a_zone))[0]

    assert pre_bind(make_csi_node("a", migrated=["kubernetes.io/aws-ebs"])) == SUCCESS
    assert pre_bind().message.endswith("no matching NodeSelectorTerms")


def test_without_an_api_server_volumes_are_not_bound() -> None:
    binding = Binding(*STATIC)
    binding.framework = make_framework(VolumeBinding)
    (binding.plugin,) = binding.framework.plugins.pre_bind

    status, _ = binding.prepared()

    assert status == error("binding volumes: there is no API server to bind through")
