"""The pod of the mode sidecar as processes of this machine: what a real kube-scheduler sent is answered, and a
scheduler works with it.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from extender.values.config.configuration import Extender
from extender.values.config.loading import load
from tests.api.test_questions import node_of
from tests.api.test_recorded_calls import as_go_writes, recorded_calls
from tests.deploy.manifests import Object, container, objects_of, one, shipped
from tests.deploy.pods import RunningPod, client, running
from tests.kit import objects
from tests.kit.certificates import Authority
from tests.kit.service import JSON, TWELVE_NODES, kubeconfig_for, process, serving
from tests.kit.waiting import until
from tools.render_manifests import rendered

pytestmark = pytest.mark.slow

SECURED: Final = "tls.secretName=reprieve-tls"


def manifest(*values: str) -> tuple[Object, ...]:
    """The chart with these values, for pods of the stock scheduler's name, as in the recorded calls."""
    common = ("--set=mode=sidecar", "--set=schedulerName=default-scheduler")
    return objects_of(rendered(*common, *(f"--set={value}" for value in values)))


def extender_of(pod: RunningPod) -> Extender:
    """The extender as the pod's kube-scheduler is told of it."""
    (extender,) = load(pod.placed(one("ConfigMap", pod.objects)["data"]["kube-scheduler.yaml"])).extenders
    return extender


@contextmanager
def over_http(pod: RunningPod, authority: Authority | None) -> Iterator[httpx.Client]:
    """A client that does as the entry for kube-scheduler says: with its files, and for the name of its server."""
    extender = extender_of(pod)
    if extender.tls_config is None:
        with client(pod) as local:
            yield local
        return
    tls = extender.tls_config
    assert authority is not None
    assert Path(tls.ca_file).read_bytes() == authority.certificate.read_bytes()
    with client(pod, authority, (tls.cert_file, tls.key_file)) as secured:
        secured.headers["Host"] = tls.server_name
        yield secured


@pytest.mark.usefixtures("helm")
@pytest.mark.parametrize(
    "values", [pytest.param((), id="over loopback"), pytest.param((SECURED,), id="with a certificate")]
)
def test_every_recorded_call_of_a_kube_scheduler_is_answered(values: tuple[str, ...], tmp_path: Path) -> None:
    answered = Counter[str]()
    authority = Authority(tmp_path, "cluster") if values else None
    with (
        serving(state=TWELVE_NODES, schedule=False) as cluster,
        running(manifest(*values), cluster.port, tmp_path, authority) as pod,
    ):
        until(lambda: pod.passes("startup"))
        until(lambda: pod.passes("readiness"))
        extender = extender_of(pod)
        paths = {verb: getattr(extender, f"{verb}_verb") for verb in ("filter", "prioritize", "preempt")}
        with over_http(pod, authority) as scheduler:
            for call in recorded_calls():
                if call["verb"] not in paths or call["nodeCacheCapable"] != extender.node_cache_capable:
                    continue
                url = httpx.URL(f"{extender.url_prefix}/{paths[call['verb']]}")
                answer = scheduler.post(url.path, content=as_go_writes(call["body"]), headers=JSON)
                assert answer.status_code == 200, answer.text
                # No plugin of one's own is enabled: whatever kube-scheduler proposes stands.
                if call["verb"] == "filter" and call["run"] == "twelve-nodes":
                    assert answer.json()["NodeNames"] == call["body"]["NodeNames"]
                if call["verb"] == "preempt" and call["run"] == "twelve-nodes":
                    proposed, chosen = (call["body"]["NodeNameToMetaVictims"], answer.json()["NodeNameToMetaVictims"])
                    assert chosen
                    assert all(_uids(victims) == _uids(proposed[node]) for node, victims in chosen.items())
                answered[call["verb"]] += 1

        assert pod.passes("liveness")
    assert min(answered[verb] for verb in paths) > 0


def test_a_scheduler_with_the_configuration_of_the_pods_kube_scheduler_binds_pods(tmp_path: Path) -> None:
    """Our own scheduler stands in for the container of kube-scheduler: it reads the same file, and asks the extender in
    it.
    """
    with serving(schedule=False) as cluster, running(shipped("sidecar"), cluster.port, tmp_path) as pod:
        until(lambda: pod.passes("readiness"))
        with _kube_scheduler(pod, cluster.port, tmp_path), client(pod) as ours:
            web = objects.pod("web", "10m", schedulerName="reprieve")
            cluster.post("/api/v1/namespaces/default/pods", web)
            until(lambda: node_of(cluster, "web") != "")

            metrics = ours.get("/metrics").text
    for verb in ("filter", "prioritize"):
        assert f'reprieve_verb_requests_total{{result="answered",verb="{verb}"}}' in metrics


@contextmanager
def _kube_scheduler(pod: RunningPod, cluster: int, folder: Path) -> Iterator[None]:
    config = next(arg for arg in container(pod.objects, "kube-scheduler")["args"] if arg.startswith("--config="))
    (folder / "second").mkdir()
    kubeconfig = kubeconfig_for(cluster, folder / "second")
    source = Path(pod.placed(config).removeprefix("--config="))
    placed = folder / "second" / source.name
    placed.write_text(pod.placed(source.read_text()))
    flags = ("--schedule", "--port=0", "--kubeconfig", kubeconfig, f"--config={placed}")
    with process("serve", *flags, log=folder / "second" / "log"):
        yield


def _uids(victims: dict[str, Any]) -> set[str]:
    return {pod["UID"] for pod in victims["Pods"]}
