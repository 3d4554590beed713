"""What a pod is up to, in one word, and how many of its containers are ready."""

from datetime import UTC, datetime
from typing import Any

import pytest

from extender.rules import api_resources
from reprieve.cluster.responses.response import table_of
from tests.kit.tables import cases

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def pod(*, metadata=None, spec=None, **status):
    return {
        "metadata": {"name": "p", "creationTimestamp": "2026-11-20T11:58:30Z", **(metadata or {})},
        "spec": {"containers": [{"name": "c"}], **(spec or {})},
        "status": {"phase": "Pending", **status},
    }


def container(name="c", *, ready=False, restarts=0, ended=None, **state):
    last = {"terminated": {"finishedAt": ended}} if ended else {}
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state, "lastState": last}


def row(obj):
    (only,) = table_of(api_resources.PODS, [obj], now=NOW)["rows"]
    return only


INIT = {"initContainers": [{"name": "i"}, {"name": "j"}]}
SIDECAR = {"initContainers": [{"name": "i", "restartPolicy": "Always"}]}
GOING = {"deletionTimestamp": "2026-11-20T12:00:00Z"}
RUNNING: dict[str, Any] = {"running": {}}


@cases(
    "obj, ready, status",
    ("nothing happened yet", pod(), "0/1", "Pending"),
    (
        "gated",
        pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        "0/1",
        "SchedulingGated",
    ),
    ("the reason before the phase", pod(phase="Failed", reason="Evicted"), "0/1", "Evicted"),
    ("running", pod(phase="Running", containerStatuses=[container(ready=True, **RUNNING)]), "1/1", "Running"),
    (
        "creating",
        pod(containerStatuses=[container(waiting={"reason": "ContainerCreating"})]),
        "0/1",
        "ContainerCreating",
    ),
    (
        "the first container that has something to say",
        pod(
            phase="Running",
            containerStatuses=[container(waiting={"reason": "CrashLoopBackOff"}), container("d", terminated={})],
        ),
        "0/1",
        "CrashLoopBackOff",
    ),
    (
        "through",
        pod(phase="Succeeded", containerStatuses=[container(terminated={"reason": "Completed"})]),
        "0/1",
        "Completed",
    ),
    ("exit code", pod(phase="Failed", containerStatuses=[container(terminated={"exitCode": 3})]), "0/1", "ExitCode:3"),
    ("signal", pod(phase="Failed", containerStatuses=[container(terminated={"signal": 9})]), "0/1", "Signal:9"),
    (
        "one is through, one runs, and the pod is ready",
        pod(
            phase="Running",
            conditions=[{"type": "Ready", "status": "True"}],
            containerStatuses=[container(terminated={"reason": "Completed"}), container("d", ready=True, **RUNNING)],
        ),
        "1/1",
        "Running",
    ),
    (
        "one is through, one runs, and the pod is not ready",
        pod(
            phase="Running",
            containerStatuses=[container(terminated={"reason": "Completed"}), container("d", ready=True, **RUNNING)],
        ),
        "1/1",
        "NotReady",
    ),
    ("going", pod(metadata=GOING, phase="Running"), "0/1", "Terminating"),
    ("going from a lost node", pod(metadata=GOING, phase="Running", reason="NodeLost"), "0/1", "Unknown"),
    ("over before it goes", pod(metadata=GOING, phase="Succeeded"), "0/1", "Succeeded"),
    ("the first init container", pod(spec=INIT, initContainerStatuses=[container("i", **RUNNING)]), "0/1", "Init:0/2"),
    (
        "the second init container",
        pod(spec=INIT, initContainerStatuses=[container("i", terminated={"exitCode": 0}), container("j", **RUNNING)]),
        "0/1",
        "Init:1/2",
    ),
    (
        "an init container waits for its turn",
        pod(spec=INIT, initContainerStatuses=[container("i", waiting={"reason": "PodInitializing"})]),
        "0/1",
        "Init:0/2",
    ),
    (
        "an init container waits for something",
        pod(spec=INIT, initContainerStatuses=[container("i", waiting={"reason": "ImagePullBackOff"})]),
        "0/1",
        "Init:ImagePullBackOff",
    ),
    (
        "an init container failed",
        pod(spec=INIT, initContainerStatuses=[container("i", terminated={"exitCode": 1, "reason": "Error"})]),
        "0/1",
        "Init:Error",
    ),
    (
        "exit code of an init container",
        pod(spec=INIT, initContainerStatuses=[container("i", terminated={"exitCode": 1})]),
        "0/1",
        "Init:ExitCode:1",
    ),
    (
        "signal of an init container",
        pod(spec=INIT, initContainerStatuses=[container("i", terminated={"exitCode": 137, "signal": 9})]),
        "0/1",
        "Init:Signal:9",
    ),
    (
        "initialized according to the condition",
        pod(
            spec=INIT,
            phase="Running",
            conditions=[{"type": "Initialized", "status": "True"}],
            initContainerStatuses=[container("i", **RUNNING)],
            containerStatuses=[container(waiting={"reason": "CrashLoopBackOff"})],
        ),
        "0/1",
        "CrashLoopBackOff",
    ),
    (
        "a sidecar counts",
        pod(
            spec=SIDECAR,
            phase="Running",
            initContainerStatuses=[{**container("i", ready=True, **RUNNING), "started": True}],
            containerStatuses=[container(ready=True, **RUNNING)],
        ),
        "2/2",
        "Running",
    ),
    ("a sidecar that starts", pod(spec=SIDECAR, initContainerStatuses=[container("i", **RUNNING)]), "0/2", "Init:0/1"),
)
def test_ready_containers_and_status_of_a_pod_are_those_of_kubectl(obj, ready, status):
    assert row(obj)["cells"][1:3] == [ready, status]


@cases(
    "obj, restarts",
    ("none", pod(), "0"),
    ("time of the restart is unknown", pod(containerStatuses=[container(restarts=2)]), "2"),
    (
        "the last counts",
        pod(
            containerStatuses=[
                container(restarts=2, ended="2026-11-20T11:55:00Z"),
                container("d", restarts=1, ended="2026-11-20T11:50:00Z"),
            ]
        ),
        "3 (5m ago)",
    ),
    (
        "of init containers while they run",
        pod(spec=INIT, initContainerStatuses=[container("i", restarts=4, ended="2026-11-20T11:59:00Z", **RUNNING)]),
        "4 (60s ago)",
    ),
    (
        "not of init containers that are through",
        pod(
            spec=INIT, initContainerStatuses=[container("i", restarts=4, terminated={}), container("j", terminated={})]
        ),
        "0",
    ),
    (
        "of sidecars always",
        pod(spec=SIDECAR, initContainerStatuses=[{**container("i", restarts=4, **RUNNING), "started": True}]),
        "4",
    ),
)
def test_restarts_are_summed_with_the_time_of_the_last_one(obj, restarts):
    assert row(obj)["cells"][3] == restarts


def test_more_is_shown_on_request():
    gates = {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}], "nodeName": "n"}
    conditions = [{"type": "a", "status": "True"}, {"type": "b", "status": "False"}]
    obj = pod(spec=gates, podIPs=[{"ip": "10.0.0.1"}], nominatedNodeName="m", conditions=conditions)

    table = table_of(api_resources.PODS, [obj, pod()], now=NOW)

    assert [(column["name"], column["priority"]) for column in table["columnDefinitions"]][4:] == [
        ("Age", 0),
        ("IP", 1),
        ("Node", 1),
        ("Nominated Node", 1),
        ("Readiness Gates", 1),
    ]
    assert [row["cells"][4:] for row in table["rows"]] == [
        ["90s", "10.0.0.1", "n", "m", "1/2"],
        ["90s", "<none>", "<none>", "<none>", "<none>"],
    ]


@pytest.mark.parametrize(
    ("phase", "message"), [("Succeeded", "The pod has completed successfully."), ("Failed", "The pod failed.")]
)
def test_table_rows_of_finished_pods_have_the_condition_completed(phase, message):
    assert row(pod(phase=phase))["conditions"] == [
        {"type": "Completed", "status": "True", "reason": phase, "message": message}
    ]
    assert "conditions" not in row(pod())
