"""docs/preemption-through-the-versions.md: its commands answer as it says, and its tables are those of the example and
of the rules.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml

from extender.engine import framework as fwk
from extender.engine.plugins.inter_pod_affinity.filtering import AFFINITY, ANTI_AFFINITY
from extender.engine.plugins.node_affinity import REASON_POD
from extender.engine.plugins.node_name import REASON as WRONG_NAME
from extender.engine.plugins.node_ports import REASON as PORTS
from extender.engine.plugins.pod_topology_spread.filtering import MISSING_LABEL, NOT_MATCHED
from extender.engine.plugins.taints import CORDONED, UNTOLERATED as TAINTED
from extender.engine.plugins.volume_restrictions import REASON_DISK, REASON_READ_WRITE_ONCE_POD
from extender.engine.plugins.volume_zone import REASON as OTHER_ZONE
from extender.engine.preemption import RULES
from extender.engine.preemption.evaluator import nodes_where_preemption_might_help
from extender.testing import make_node, make_snapshot
from tests.test_questions_page import is_as_said, lines_of

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs" / "preemption-through-the-versions.md").read_text()
EXAMPLES: Final = re.findall(r"^```console\n\$ (.*?)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def table(first_heading: str) -> list[list[str]]:
    """The rows of the table with this heading, cell by cell."""
    rows = re.search(rf"^\| ?{first_heading} ?\|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert rows is not None
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1].splitlines()]


@pytest.mark.parametrize(
    ("script", "output"),
    [
        pytest.param(script, output, id=script, marks=[pytest.mark.slow] if number else [])
        for number, (script, output) in enumerate(EXAMPLES)
    ],
)
def test_commands_on_the_page_have_the_effect_that_it_shows(script: str, output: str) -> None:
    variables = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    run = subprocess.run(["bash", "-c", script], cwd=ROOT, env=variables, capture_output=True, check=False, timeout=120)

    assert run.returncode == 0, run.stderr.decode()
    assert is_as_said(lines_of(output), lines_of(run.stdout.decode())), run.stdout.decode()


def test_the_four_releases_choose_four_nodes() -> None:
    chosen = [re.findall(r"would evict .* on (\S+)", output) for _, output in EXAMPLES]

    assert chosen == [["node-a"], ["node-b"], ["node-c"], ["node-d"]]


def test_the_table_of_the_cluster_is_the_example() -> None:
    objects = yaml.safe_load((ROOT / "examples" / "clusters" / "four-releases.yaml").read_text())["items"]
    cpus = {obj["metadata"]["name"]: obj["status"]["allocatable"]["cpu"] for obj in objects if obj["kind"] == "Node"}
    pods = [obj for obj in objects if obj["kind"] == "Pod"]

    assert table("node") == [
        [
            pod["spec"]["nodeName"],
            cpus[pod["spec"]["nodeName"]],
            pod["metadata"]["name"],
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"],
            str(pod["spec"]["priority"]),
            pod["status"]["startTime"][11:16],
            pod["metadata"].get("labels", {}).get("app", ""),
        ]
        for pod in pods
    ]


REFUSALS: Final = {
    "cordoned, tainted, wrong name, labels or node affinity": [
        fwk.unresolvable(reason) for reason in (CORDONED, TAINTED, WRONG_NAME, REASON_POD)
    ],
    "required pod affinity": [fwk.unresolvable(AFFINITY)],
    "volumes of another zone or node, no volume to bind": [fwk.unresolvable(OTHER_ZONE)],
    "ports, anti-affinity, disks, volume limits, topology skew": [
        fwk.unschedulable(reason) for reason in (PORTS, ANTI_AFFINITY, REASON_DISK, NOT_MATCHED)
    ],
    "a shortage, within the capacity of the node": [
        fwk.unschedulable("Insufficient cpu"),
        fwk.unschedulable("Too many pods"),
    ],
    "a request beyond the capacity of the node": [
        fwk.unresolvable("Insufficient cpu"),
        fwk.unresolvable("Too many pods", "Insufficient cpu"),
    ],
    "the node lacks the label of a topology constraint": [fwk.unresolvable(MISSING_LABEL)],
    "a ReadWriteOncePod claim in use": [fwk.unschedulable(REASON_READ_WRITE_ONCE_POD)],
}


@pytest.mark.parametrize("row", table("refusal"), ids=lambda row: row[0])
def test_the_table_of_refusals_is_what_the_rules_make_of_them(row: list[str]) -> None:
    snapshot = make_snapshot(make_node("n"))
    refusal, *outcomes = row

    for status in REFUSALS[refusal]:
        refused = fwk.NodeStatuses({"n": status})
        counts = [len(nodes_where_preemption_might_help(snapshot, refused, rules)) for rules in RULES.values()]
        assert outcomes == ["tried" if count else "pointless" for count in counts]


def test_no_refusal_is_left_out() -> None:
    assert [row[0] for row in table("refusal")] == list(REFUSALS)
