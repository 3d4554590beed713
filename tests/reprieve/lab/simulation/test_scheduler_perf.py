"""Workloads in the form of upstream's scheduler_perf."""

import json
from pathlib import Path
from typing import Any

import pytest

from extender.values.config.configuration import Configuration
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.report import SimulationReport
from reprieve.lab.simulation.sweeping import read_workloads
from reprieve.lab.simulation.workload import WorkloadError

EXAMPLE = Path(__file__).parents[4] / "examples" / "workloads" / "scheduler-perf" / "performance-config.yaml"


def manifest(kind: str, spec: Any, version: str = "v1", **metadata: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})


def a_pod(**spec: Any) -> str:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return manifest("Pod", {"containers": [container], **spec})


DEVICES = "resource.k8s.io/v1"
ONE_GPU = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpus"}}]}}
ONE_GIB = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "csi": {"driver": "d.example", "volumeHandle": "x"},
}

TEMPLATES = {
    "pod.yaml": a_pod(),
    "gated.yaml": a_pod(schedulingGates=[{"name": "g"}]),
    "node.yaml": "kind: Node\napiVersion: v1\nmetadata: {generateName: dra-}\nstatus: {capacity: {cpu: 8, memory: 8Gi, "
    "pods: 110}}\n",
    "tainted.yaml": manifest("Node", {"taints": [{"key": "k", "effect": "NoSchedule"}]}, name="tainted"),
    "spread.yaml": a_pod(
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "NodeTaintsPolicy": "Honor",
                "labelSelector": {},
            }
        ]
    ),
    "class.yaml": manifest("DeviceClass", {"selectors": [{"cel": {"expression": "true"}}]}, DEVICES, name="gpus"),
    "claim.yaml": manifest("ResourceClaim", ONE_GPU, DEVICES, name="claim-{{.Index}}"),
    "claims.yaml": manifest("ResourceClaimTemplate", {"spec": ONE_GPU}, "resource.k8s.io/v1beta2", name="one-gpu"),
    "claiming.yaml": a_pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]),
    "sharing.yaml": a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "claim-{{DivideInt .Index 5}}"}]),
    "requesting.yaml": a_pod(
        containers=[
            {"name": "c", "image": "i", "resources": {"requests": {"deviceclass.resource.kubernetes.io/gpus": "1"}}}
        ]
    ),
    "pv.yaml": manifest("PersistentVolume", VOLUME),
    "pvc.yaml": manifest("PersistentVolumeClaim", ONE_GIB),
}


def played(folder: Path, operations: str, params: str = "{num: 10}", options: str = "") -> SimulationReport:
    """The report of a workload with these operations."""
    for name, text in TEMPLATES.items():
        (folder / name).write_text(text)
    path = folder / "performance-config.yaml"
    lines = "".join(f"  - {operation.strip()}\n" for operation in operations.splitlines() if operation.strip())
    path.write_text(
        f"- name: Case\n  defaultPodTemplatePath: pod.yaml\n{options}  workloadTemplate:\n{lines}"
        f"  workloads: [{{name: small, threshold: 5, params: {params}}}]\n"
    )
    (workload,) = read_workloads(path)
    return play(workload, Configuration()).report


@pytest.mark.slow
def test_every_workload_of_the_example_is_played() -> None:
    reports = [play(workload, Configuration()).report for workload in read_workloads(EXAMPLE)]

    assert [report.workload for report in reports] == ["Spreading/300Nodes", "Preemption/50Nodes", "Churn/100Nodes"]
    assert not any(report.refused for report in reports)
    assert [(phase.name, phase.pods, phase.threshold) for report in reports for phase in report.phases] == [
        ("measured", 1000, 100), ("high", 100, 20), ("all of them", 400, None),
    ]  # fmt: skip
    assert all(phase.pods_per_second > 0 for report in reports for phase in report.phases)
    assert reports[1].preemptions == 100, "one for each pod of the phase `high`"
    assert reports[2].withdrawn
    assert not any(report.notes for report in reports)


def test_a_folder_stands_for_the_files_in_it(tmp_path: Path) -> None:
    """As in upstream's repository, where each folder has one."""
    text = "[{name: Case, workloadTemplate: [], workloads: [{name: small}]}]\n"
    for folder in ("misc", "volumes"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "performance-config.yaml").write_text(text)

    assert [workload.name for workload in read_workloads(tmp_path)] == ["misc/Case/small", "volumes/Case/small"]
    assert [workload.name for workload in read_workloads(tmp_path / "misc")] == ["Case/small"]


def test_pods_that_do_not_fit_are_noted(tmp_path: Path) -> None:
    report = played(
        tmp_path, "{opcode: createNodes, count: 1}\n{opcode: createPods, countParam: $num, collectMetrics: true}"
    )

    assert (report.placed, report.refused) == (4, 6)
    assert report.notes == ("operation 1: 6 pods have no node, so that scheduler_perf would fail here",)
    assert [(phase.name, phase.pods, phase.threshold) for phase in report.phases] == [("namespace-1", 4, 5)]


def test_gated_pods_are_attempted_and_pods_are_deleted_at_intervals(tmp_path: Path) -> None:
    operations = """
        {opcode: createNodes, count: 1}
        {opcode: createPods, count: 3, podTemplatePath: gated.yaml, skipWaitToCompletion: true}
        {opcode: barrier, stageRequirement: Attempted}
        {opcode: createPods, count: 4, namespace: busy}
        {opcode: deletePods, namespace: busy, deletePodsPerSecond: 1, skipWaitToCompletion: true}
        {opcode: createPods, count: 1}
        {opcode: sleep, duration: 1m}
    """

    report = played(tmp_path, operations)

    assert (report.placed, report.gated, report.refused) == (5, 3, 0)
    assert 25 < report.waiting.longest < 40, "a deleted pod leaves after its grace of 30 s"


@pytest.mark.slow
def test_a_steady_state_goes_on_for_its_duration(tmp_path: Path) -> None:
    operations = """
        {opcode: createNodes, count: 9}
        {opcode: createPods, countParam: $num, steadyState: true, durationParam: $long, collectMetrics: true}
    """

    report = played(tmp_path, operations, "{num: 5, long: 2s}")

    assert report.phases[0].pods > 500
    assert report.simulated_seconds >= 2


def test_sets_of_pods_and_labels_of_namespaces_and_nodes(tmp_path: Path) -> None:
    operations = """
        {opcode: createNodes, count: 6, labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}}
        {opcode: createNamespaces, prefix: team, count: 3}
        {opcode: createPodSets, count: 3, namespacePrefix: team, createPodsOp: {opcode: createPods, count: 2}}
    """

    assert played(tmp_path, operations).placed == 6


def test_fields_may_begin_with_capitals_as_upstream_reads_them(tmp_path: Path) -> None:
    """Of two nodes one is tainted; a spread that honours taints does not count it."""
    operations = """
        {opcode: createNodes, count: 1}
        {opcode: createNodes, count: 1, nodeTemplatePath: tainted.yaml}
        {opcode: createPods, count: 3, podTemplatePath: spread.yaml}
    """

    assert played(tmp_path, operations).placed == 3


def test_pods_with_volumes_are_limited_by_what_nodes_attach(tmp_path: Path) -> None:
    operations = """
        {opcode: createNodes, count: 1, nodeAllocatableStrategy: {csiNodeAllocatable: {d.example: {count: 3}}}}
        {opcode: createPods, count: 1, persistentVolumeTemplatePath: pv.yaml, persistentVolumeClaimTemplatePath: pvc.yaml}
        {opcode: createPods, count: 3, persistentVolumeTemplatePath: pv.yaml, persistentVolumeClaimTemplatePath: pvc.yaml}
    """

    report = played(tmp_path, operations)

    assert (report.placed, report.refused) == (3, 1)
    assert "exceed max volume count" in report.refusals[0].message


DRIVER = """
    {opcode: createNodes, count: 2, nodeTemplatePath: node.yaml}
    {opcode: createResourceDriver, driverName: gpu.example, nodes: dra-*, maxClaimsPerNodeParam: $num}
    {opcode: createAny, templatePath: class.yaml}
"""


def test_claims_of_templates_take_devices_until_none_is_left(tmp_path: Path) -> None:
    operations = DRIVER + """
        {opcode: createAny, templatePath: claims.yaml, namespace: test}
        {opcode: createPods, namespace: test, count: 5, podTemplatePath: claiming.yaml, skipWaitToCompletion: true}
        {opcode: sleep, duration: 1s}
        {opcode: deletePods, namespace: test}
        {opcode: sleep, duration: 40s}
        {opcode: createPods, namespace: test, count: 4, podTemplatePath: claiming.yaml}
    """  # fmt: skip

    report = played(tmp_path, operations, "{num: 2}")

    assert (report.placed, report.withdrawn, report.refused) == (8, 1, 0)


def test_a_search_for_devices_does_not_time_out_because_the_machine_is_slow(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DynamicResources
    args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: DynamicResourcesArgs, filterTimeout: 1ns}
""")
    operations = DRIVER + """
        {opcode: createAny, templatePath: claims.yaml, namespace: test}
        {opcode: createPods, namespace: test, count: 4, podTemplatePath: claiming.yaml}
    """  # fmt: skip

    assert played(tmp_path, operations, "{num: 2}", "  schedulerConfigPath: config.yaml\n").placed == 4


def test_pods_that_request_extended_resources_take_devices_until_none_is_left(tmp_path: Path) -> None:
    """And give them back. Upstream: test/integration/scheduler_perf/dra, SchedulingWithExtendedResource."""
    operations = DRIVER + """
        {opcode: createPods, namespace: test, count: 5, podTemplatePath: requesting.yaml, skipWaitToCompletion: true}
        {opcode: sleep, duration: 1s}
        {opcode: deletePods, namespace: test}
        {opcode: sleep, duration: 40s}
        {opcode: createPods, namespace: test, count: 4, podTemplatePath: requesting.yaml}
    """  # fmt: skip

    report = played(tmp_path, operations, "{num: 2}")

    assert (report.placed, report.withdrawn, report.refused) == (8, 1, 0)


def test_claims_are_allocated_without_pods_and_shared_by_pods(tmp_path: Path) -> None:
    operations = DRIVER + """
        {opcode: createAny, templatePath: claim.yaml, namespace: init, count: 3}
        {opcode: allocResourceClaims, namespace: init}
        {opcode: createAny, templatePath: claim.yaml, namespace: test, count: 2}
        {opcode: createPods, namespace: test, count: 10, podTemplatePath: sharing.yaml}
    """  # fmt: skip

    report = played(tmp_path, operations, "{num: 2}")

    assert (report.pods, report.placed) == (10, 5)
    assert "cannot allocate all claims" in report.refusals[0].message


def test_claims_beyond_the_devices_cannot_be_allocated(tmp_path: Path) -> None:
    operations = DRIVER + """
        {opcode: createAny, templatePath: claim.yaml, namespace: init, count: 5}
        {opcode: allocResourceClaims, namespace: init}
    """  # fmt: skip

    with pytest.raises(WorkloadError, match="no node has devices for the claim init/claim-4"):
        played(tmp_path, operations, "{num: 2}")


PREPARED = "  featureGates: {DRADeviceBindingConditions: true}\n"
WAIT_FOR_DRIVER = (
    DRIVER
    + """
    {opcode: createAny, templatePath: claims.yaml, namespace: test}
    {opcode: createPods, namespace: test, countParam: $num, podTemplatePath: claiming.yaml, steadyState: true}
    {opcode: updateDeviceConditions, namespace: test, ConditionTypeParam: $type, ConditionStatusParam: $status, durationParam: $long}
    {opcode: checkPodScheduled, namespace: test, ScheduledParam: $scheduled, durationParam: $long}
"""
)


@pytest.mark.parametrize(
    ("condition", "is_expected", "placed", "note"),
    [
        ("DeviceAttached", "true", 2, None),
        ("DeviceAttached", "false", 2, "2 pods have a node"),
        ("AttachmentFailed", "false", 0, None),
        ("AttachmentFailed", "true", 0, "2 pods have no node"),
    ],
)
def test_pods_are_bound_once_the_driver_has_attached_their_devices(
    tmp_path: Path, condition: str, is_expected: str, placed: int, note: str | None
) -> None:
    """And not where it says that it failed; then they wait for the devices once more. Upstream: dra,
    DRABindingConditionsTest.
    """
    params = f'{{num: 2, type: {condition}, status: "True", scheduled: {is_expected}, long: 30s}}'

    report = played(tmp_path, WAIT_FOR_DRIVER, params, PREPARED)

    assert (report.placed, report.refused) == (placed, 2 - placed)
    assert report.notes == (() if note is None else (f"operation 6: {note}, so that scheduler_perf would fail here",))
    assert report.simulated_seconds < 60, "the play does not wait until the binding times out"


def test_pods_wait_while_the_driver_reports_no_device_conditions(tmp_path: Path) -> None:
    operations = DRIVER + """
        {opcode: createAny, templatePath: claims.yaml, namespace: test}
        {opcode: createPods, namespace: test, count: 2, podTemplatePath: claiming.yaml}
    """  # fmt: skip

    report = played(tmp_path, operations, "{num: 2}", PREPARED)

    assert (report.placed, report.refused) == (0, 2)
    assert report.notes == ("operation 4: 2 pods have no node, so that scheduler_perf would fail here",)


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta2"])
def test_rules_about_taints_of_devices_have_two_versions(tmp_path: Path, version: str) -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": "gpu.example"}, "taint": taint}
    rule = manifest("DeviceTaintRule", spec, f"resource.k8s.io/{version}", name="r")
    (tmp_path / "rule.yaml").write_text(rule)
    operations = DRIVER + """
        {opcode: createAny, templatePath: rule.yaml}
        {opcode: createAny, templatePath: claims.yaml, namespace: test}
        {opcode: createPods, namespace: test, count: 1, podTemplatePath: claiming.yaml}
    """  # fmt: skip
    gates = "{DRADeviceTaints: true, DRADeviceTaintRules: true}"

    assert played(tmp_path, operations, "{num: 2}", f"  featureGates: {gates}\n").placed == 0


def test_devices_of_other_workloads_are_ready_at_once(tmp_path: Path) -> None:
    """Upstream's API server drops binding conditions where a workload does not turn their feature gate on."""
    operations = DRIVER + """
        {opcode: createAny, templatePath: claims.yaml, namespace: test}
        {opcode: createPods, namespace: test, count: 2, podTemplatePath: claiming.yaml}
        {opcode: updateDeviceConditions, namespace: test, conditionTypeParam: $type, conditionStatusParam: $status, duration: 3s}
    """  # fmt: skip

    with pytest.raises(
        WorkloadError, match=r"updateDeviceConditions.*no device of the claim test/.* has binding conditions"
    ):
        played(tmp_path, operations, '{num: 2, type: DeviceAttached, status: "True"}')


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ("{opcode: createPodGroups}", "operation 0 (createPodGroups): the opcode 'createPodGroups' is not supported"),
        ("{count: 3}", "the opcode None is not supported"),
        ("{opcode: createNodes, cows: 3}", "operation 0 (createNodes): Object contains unknown field `cows`"),
        ("{opcode: createNodes, countParam: $many}", "the parameter '$many' is not given"),
        ("{opcode: createNodes, count: 999999999}", "count is 999999999"),
        ("{opcode: createNodes, count: -1}", "count is -1"),
        ("{opcode: createPods, count: 1, podTemplatePath: nowhere.yaml}", "nowhere.yaml: no such file"),
        ("{opcode: createPods, count: 1, podTemplatePath: node.yaml}", "node.yaml: "),
        ("{opcode: createAny, templatePath: pod.yaml, countParam: $text}", "$text is 'x'"),
        ("{opcode: churn, mode: sometimes, templatePaths: [pod.yaml]}", "churn: the mode 'sometimes'"),
        ("{opcode: sleep, duration: long}", "invalid duration"),
        ("{opcode: sleep, duration: 99999h}", "longer than 31 days"),
        ("{opcode: stopCollectingMetrics}", "no measurement is under way"),
        ("{opcode: barrier, stageRequirement: Done}", "the stage 'Done' is not supported"),
        ("{opcode: updateDeviceConditions, namespace: a, conditionTypeParam: $text, conditionStatusParam: "
         "$text}", "one of True, False"),
        ("{opcode: updateDeviceConditions, namespace: a, conditionTypeParam: $text, conditionStatusParam: "
         "$yes}", "there are no claims"),
        ("{opcode: updateAny, templatePath: class.yaml}", "updateAny: class.yaml: there is no DeviceClass gpus"),
    ],
)  # fmt: skip
def test_unsupported_operation_is_refused_with_its_number(tmp_path: Path, operation: str, why: str) -> None:
    with pytest.raises(WorkloadError) as raised:
        played(tmp_path, operation, '{num: 1, text: x, "yes": "True"}')

    assert "Case/small: operation 0" in str(raised.value)
    assert why in str(raised.value)


def test_feature_gates_are_those_of_the_workload(tmp_path: Path) -> None:
    operations = "{opcode: createNodes, count: 1}\n{opcode: createPods, count: 1}"

    report = played(tmp_path, operations, options="  featureGates: {SchedulerQueueingHints: false}\n")

    assert [note.partition(" is ")[0] for note in report.notes] == ["feature gate SchedulerQueueingHints=false"]
    with pytest.raises(WorkloadError, match="Case/small: feature gate NoSuchGate: unrecognized feature gate"):
        played(tmp_path, operations, options="  featureGates: {NoSuchGate: true}\n")


@pytest.mark.parametrize("text", ["- name: a\n", "- [", "- {name: a, workloadTemplate: 3, workloads: []}"])
def test_malformed_list_of_test_cases_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "performance-config.yaml").write_text(text)

    with pytest.raises(WorkloadError, match=r"performance-config\.yaml: "):
        read_workloads(tmp_path / "performance-config.yaml")
