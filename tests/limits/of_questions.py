"""Questions, configuration and files."""

import gzip
import random
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from api.routes.page import _read_form
from extender.client.credentials.kubeconfig_files import read_files
from extender.client.http_extender.checks import warnings_of
from extender.rules.state_file import read_state
from extender.rules.trial_registry import TrialRegistry
from extender.testing import make_pod
from extender.values.config.configuration import Configuration, Extender, ExtenderTLSConfig
from extender.values.golang.times import Duration
from extender.values.golang.yaml import read_yaml
from reprieve.lab.plan.plan import plan
from reprieve.lab.plan.plan_answer import PlanRequest
from reprieve.lab.recordings.entries import Recording
from reprieve.lab.simulation.perf_templates import TemplateFile
from reprieve.lab.simulation.sweeping import read_workloads
from reprieve.lab.simulation.text_template import rendered
from reprieve.sources.manifest_text import objects_in
from tests.extender.answers.what_if import test_capacity as capacities, test_what_if as what_ifs
from tests.kit.cluster import cluster_of
from tests.kit.objects import pod, priority_class
from tests.limits.of_processes import PROCESSES
from tests.limits.rows import Filled, Held, Kept, words
from tests.reprieve.lab.plan import test_plan as plans


def in_file(read: Callable[[Path], object], content: str | bytes, name: str = "file") -> str:
    """Returns what is said against a file with that content; empty if it is read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return words(lambda: read(path)).replace(folder, "")


def what_if(number_of_nodes: int = 1, *create: dict[str, Any], **more: Any) -> Any:
    nodes = [what_ifs.node(f"n{index}") for index in range(number_of_nodes)]
    return what_ifs.ask(cluster_of(*nodes), *create, **more)


def asking(*create: dict[str, Any], nodes: int = 1, **more: Any) -> str:
    return words(lambda: what_if(nodes, *create, **more))


def classes(number: int) -> list[dict[str, Any]]:
    return [priority_class(f"c{value}", value) for value in range(number)]


def profiles(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": f"s{index}"} for index in range(number)],
    }


def pinned(number: int) -> str:
    """Returns what is said of the pods without a sentence of their own."""
    summary: str = what_if(1, *[pod(f"p{index}", nodeName="n0") for index in range(number)]).summary
    return "".join(re.findall(r"\d+ more pods name their nodes", summary))


def planned(number: int) -> str:
    node = what_ifs.node("n", cpu=1000)
    pods = [pod(f"p{index}", cpu="1m") for index in range(number)]
    return words(lambda: plans.ask(cluster_of(node), *pods))


def full_nodes(number: int) -> int:
    """Returns of how many nodes a plan says why they are not free."""
    nodes = [what_ifs.node(f"n{index}", cpu=1) for index in range(number)]
    pods = [what_ifs.running(f"p{index}", f"n{index}", 1) for index in range(number)]
    request = PlanRequest(free_nodes=1)
    return len(
        plan(cluster_of(*nodes, pods=tuple(pods)), Configuration(), request, TrialRegistry, lambda: plans.NOW).kept
    )


def copies(number: int) -> bool:
    """Whether a node that has room for so many is said to be filled."""
    cluster = capacities.cluster_of([capacities.node("a", 10**6).capacity(cpu=number, pods=10**7)])
    capacity = capacities.fitting(cluster, make_pod().req(cpu=1).obj(), None)
    return capacity.fits == number and bool(capacity.stopped_by)


def workload(nodes: int = 1, every: str = "1s", count: int = 1) -> str:
    return (
        f"nodes: [{{name: node, count: {nodes}, cpu: 1, memory: 1Gi}}]\n"
        f"pods: [{{name: web, count: {count}, every: {every}, for: 1s, cpu: 1, memory: 1Gi}}]\n"
    )


def unpacked(ratio: int) -> str:
    """A compressed file of more than 64 MiB, unpacked, that is nearly so many times as large as packed."""
    noise = random.Random(0).randbytes(int((66 << 20) / (ratio - 1.5)))
    error = words(lambda: read_state(gzip.compress(b" " * (66 << 20) + noise, 1), "f"))
    return error if "more than" in error else ""


def recorded(size: int) -> str:
    def read(path: Path) -> None:
        list(Recording(path).entries())

    error = in_file(read, gzip.compress(b"x" * size + b"\n", 1))
    return error if "an entry has more" in error else ""


def template(depth: int) -> str:
    return words(partial(rendered, "{{" + "(AddInt 1 " * (depth + 1) + "1" + ")" * (depth + 1) + "}}", {}))


def yaml_of(depth: int) -> str:
    return words(partial(read_yaml, "[" * depth + "1" + "]" * depth))


def kubeconfig(size: int) -> str:
    return in_file(
        lambda path: read_files([path]), "apiVersion: v1\nkind: Config\n".ljust(size, "#").replace("g\n", "g\n")
    )


def pending(number: int) -> bool:
    """Whether it is said what becomes of so many pending pods if a node comes."""
    pods = tuple(make_pod(f"p{index}").req(cpu=1).obj() for index in range(number))
    about = cluster_of(what_ifs.node("n", cpu=0), what_ifs.node("m"), pods=pods)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "new"},
        "status": {"allocatable": {"cpu": "9", "pods": "9"}},
    }
    return "would now fit" in what_ifs.ask(about, node).summary


def slow(seconds: int) -> str:
    return "".join(
        warnings_of(
            Extender(
                url_prefix="https://e",
                node_cache_capable=True,
                tls_config=ExtenderTLSConfig(ca_data=b"x"),
                http_timeout=Duration.of(seconds),
            )
        )
    )


QUESTIONS: dict[str, Filled | Held | Kept] = {
    **PROCESSES,
    "QUESTION_BYTES": Held("tests/api/test_limits.py::test_a_question_is_not_as_large_as_a_call_with_full_nodes"),
    "QUESTIONS_AT_ONE_TIME": Held(
        "tests/api/test_bad_questions.py::test_caller_waits_for_at_most_one_question_of_each_other_one"
    ),
    "WHAT_IF_FORM": Filled(lambda n: words(lambda: _read_form(b"{}".ljust(n))), above="a form may have 4194304 bytes"),
    "MANIFEST_CHARACTERS": Filled(
        lambda n: words(lambda: objects_in("apiVersion: v1\nkind: Pod\n".ljust(n, "\n"))),
        above="1,048,576 characters are read",
    ),
    "OBJECTS_CREATED": Filled(lambda n: asking(*classes(n)), above="more than 20000 objects", is_slow=True),
    "PROFILES_TRIED": Filled(lambda n: asking(configuration=profiles(n)), above="more than 100 profiles"),
    "NODES_TRIED": Filled(
        lambda n: asking(nodes=n, remove_nodes=[f"n{row}" for row in range(n)]), above="more than 1000 nodes cannot go"
    ),
    "PODS_PLANNED": Filled(planned, above="a plan is for at most 200 pods"),
    "PLANNED_NODES": Filled(full_nodes, at=lambda n: n, above=200),
    "PINNED_POD_SENTENCES": Filled(pinned, above="1 more pods name"),
    "COPIES_COUNTED": Filled(copies, at=True, above=False, lowered_to=1000),
    "COPIES_PLACED": Held(
        "tests/extender/answers/what_if/test_capacity.py::test_copies_that_are_placed_one_by_one_end_earlier"
    ),
    "STATE_FILE_BYTES": Filled(
        lambda n: words(lambda: read_state(b'{"kind":"List","apiVersion":"v1","items":[]}'.ljust(n), "f")),
        above="more than 1000 bytes",
        lowered_to=1000,
    ),
    "STATE_FILE_VALUES": Filled(
        lambda n: words(
            lambda: read_state(b'{"kind":"List","apiVersion":"v1","items":[],"x":[' + b"0," * (n - 3) + b"0]}", "f")
        ),
        above="more than 1000 values",
        lowered_to=1000,
    ),
    "STATE_FILE_YAML_VALUES": Filled(
        lambda n: words(lambda: read_state(b"kind: List\napiVersion: v1\nitems: []\nx:\n" + b"- 0\n" * (n - 9), "f")),
        above="more than 1000 nodes",
        lowered_to=1000,
    ),
    "STATE_FILE_RATIO": Filled(unpacked, above="more than", is_slow=True, lowered_to=5),
    "WORKLOAD_TEMPLATE_BYTES": Filled(
        lambda n: in_file(TemplateFile, "kind: Pod\n".ljust(n, "\n")), above="more than 1048576 bytes"
    ),
    "WORKLOAD_NODES": Filled(
        lambda n: in_file(read_workloads, workload(nodes=n), "w.yaml"), above="more than 1000", lowered_to=1000
    ),
    "WORKLOAD_PODS": Filled(
        lambda n: in_file(read_workloads, workload(count=n // 2, every="1s"), "w.yaml"),
        above="but at most 1001",
        lowered_to=1001,
    ),
    "WORKLOAD_YAML_NODES": Kept(
        27,
        lambda: in_file(read_workloads, workload(), "w.yaml"),
        whole="",
        cut="/w.yaml: yaml: document has more than 26 nodes",
    ),
    "PENDING_TRIED": Kept(2, lambda: pending(2), whole=True, cut=False),
    "PODS_CREATED": Held(
        "tests/extender/answers/what_if/test_manifests.py::test_malformed_manifest_is_refused_with_the_reason",
        says="more than 5000 pods cannot be created",
    ),
    "WORKLOAD_SECONDS": Filled(
        lambda n: in_file(read_workloads, workload(every=f"{n}s"), "w.yaml"), above="longer than 31 days"
    ),
    "RECORDING_LINE_BYTES": Filled(recorded, above="an entry has more than 16777216 bytes"),
    "KUBECONFIG_BYTES": Filled(kubeconfig, above="is longer than 4 MiB"),
    "CONFIGURATION_DEPTH": Filled(yaml_of, above="exceeded max depth of 100"),
    "CONFIGURATION_YAML_NODES": Filled(
        lambda n: words(partial(read_yaml, "- 0\n" * (n - 1))), above="more than 100000 nodes", is_slow=True
    ),
    "TEMPLATE_DEPTH": Filled(template, above="is not supported"),
    "EXTENDER_SECONDS": Filled(slow, above="is longer than 30s"),
    "PLUGIN_SECONDS": Held(
        "tests/extender/engine/runtime/test_quarantine.py::test_a_plugin_that_looks_at_one_node_at_a_time_is_stopped_between_nodes"
    ),
}
