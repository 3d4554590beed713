"""`reprieve verify`: a line for each rule, and an exit code that a build server understands."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
import yaml
from typer.testing import CliRunner, Result

from api.cli import app
from reprieve.errors import StartUpError
from reprieve.lab.verification.rules import Expectation, Given, NodeGroup, Spread, When
from tests.kit.device_objects import device_class, devices, wanting
from tests.kit.tables import cases
from tests.stories.test_device_taint_rules import rule

EXAMPLES = Path(__file__).parents[2] / "examples" / "rules"

HOLDS = "name: fits\ngiven: {nodes: {cpu: 2}}\nwhen: {apply: web.yaml}\nthen: [{placed: 1}]\n"
DOES_NOT = "name: does not fit\ngiven: {nodes: {cpu: 500m}}\nwhen: {apply: web.yaml}\nthen: [{placed: 1}]\n"
WEB = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: web, image: registry.example/web:1, resources: {requests: {cpu: "1"}}}]
"""


def reprieve(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["verify", *map(str, arguments)])


def lines(result: Result) -> list[str]:
    """What is printed, without how long it took."""
    return [re.sub(r"  \d+ ms$", "", line) for line in result.stdout.splitlines()]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A folder with a manifest, for rules to come."""
    (tmp_path / "web.yaml").write_text(WEB)
    return tmp_path


def test_the_examples_hold() -> None:
    result = reprieve(EXAMPLES)

    assert (result.exit_code, lines(result)[-1]) == (0, "6 rules hold")
    assert all(line.startswith("✓ ") for line in lines(result)[:-1])


def test_failing_rule_prints_what_was_expected_and_what_happened(rules: Path) -> None:
    (rules / "rule.yaml").write_text(f"{HOLDS}---\n{DOES_NOT}")

    result = reprieve(rules)

    assert result.exit_code == 1
    assert lines(result) == [
        "✓ fits",
        "✗ does not fit",
        "    expected pods: 1 placed",
        "    but      0 placed; default/web is pending: 0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        "1 rule holds, 1 does not",
    ]


def test_build_servers_read_the_outcome_as_junit(rules: Path) -> None:
    (rules / "rule.yaml").write_text(
        f"{HOLDS}---\n{DOES_NOT}---\n{HOLDS.replace('web.yaml', 'gone.yaml').replace('fits', 'lost')}"
    )
    report = rules / "report.xml"

    reprieve(rules / "rule.yaml", "--junit", report)

    (suite,) = ET.parse(report).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
    }
    fits, fails, lost = suite
    assert (fits.get("name"), list(fits)) == ("fits", [])
    assert (fails.get("name"), fails[0].tag) == ("does not fit", "failure")
    assert (fails[0].get("message") or "").startswith(
        "expected pods: 1 placed, but 0 placed; default/web is pending: 0/1 nodes"
    )
    assert (lost[0].tag, lost[0].get("message")) == ("error", f"{rules / 'gone.yaml'}: no such file or directory")


@cases(
    "text, why",
    ("a slip of the pen", "then: [{plcaed: 1}]", "Object contains unknown field `plcaed` - at `$.then[0]`"),
    ("no YAML", "then: {", "did not find expected node content"),
    ("a node that is not there", "when: {drain: n9}\nthen: [{placed: 0}]", 'node "n9" not found'),
    (
        "a configuration that is not there",
        "given: {configuration: gone.yaml}\nthen: [{placed: 0}]",
        "no such file or directory",
    ),
    (
        "no configuration",
        "given: {configuration: {kind: Riddle}}\nthen: [{placed: 0}]",
        "Object 'apiVersion' is missing",
    ),
    ("a cluster that is not there", "given: {existing: gone.yaml}\nthen: [{placed: 0}]", "gone.yaml: no such file"),
)
def test_a_rule_that_cannot_be_tried_fails_with_the_reason(rules: Path, text: str, why: str) -> None:
    (rules / "rule.yaml").write_text(text)

    result = reprieve(rules / "rule.yaml")

    assert result.exit_code == 1
    assert why in result.stdout
    assert str(rules / "rule.yaml") in result.stdout


def test_a_dump_of_a_real_cluster_can_be_given(rules: Path) -> None:
    shutil.copy(Path(__file__).parent / "data" / "cluster-twelve-nodes.json.gz", rules / "cluster.json.gz")
    (rules / "rule.yaml").write_text(
        "name: nobody important goes for a web pod\ngiven: {existing: cluster.json.gz}\nwhen: {apply: web.yaml}\n"
        "then: [{pods: name=web, placed: 1}, {evicted: 0}]\n"
    )

    result = reprieve(rules / "rule.yaml")

    assert (lines(result), result.exit_code) == (["✓ nobody important goes for a web pod", "1 rule holds"], 0)


@pytest.mark.parametrize("name", ["gone", ""])
def test_missing_rules_are_an_error(rules: Path, name: str) -> None:
    result = reprieve(rules / name)

    assert isinstance(result.exception, StartUpError)


def test_every_field_of_a_rule_is_explained_beside_the_examples() -> None:
    text = (EXAMPLES / "README.md").read_text()

    fields = [
        field.encode_name
        for part in (Given, When, Expectation, NodeGroup, Spread)
        for field in msgspec.structs.fields(part)
    ]
    assert [name for name in fields if f"`{name}`" not in text] == []


def test_printed_lines_match_the_readme_of_the_examples() -> None:
    (example_output,) = re.findall(
        r"```console\n\$ reprieve verify examples/rules\n(.*?)```", (EXAMPLES / "README.md").read_text(), re.DOTALL
    )

    assert [re.sub(r"  \d+ ms$", "", line) for line in example_output.splitlines()] == lines(reprieve(EXAMPLES))


# Versions, and golden files.


def test_several_versions_decide_in_turn(rules: Path) -> None:
    (rules / "rule.yaml").write_text(HOLDS)

    result = reprieve(rules, "--k8s", "1.34,1.37")

    assert (result.exit_code, lines(result)) == (0, ["✓ fits [1.34]", "✓ fits [1.37]", "2 rules hold"])


def test_a_version_has_its_own_features(rules: Path) -> None:
    """A DeviceTaintRule keeps pods off devices where the gate DRADeviceTaintRules is on: from 1.37 on."""
    objects = [device_class(), devices("node", "gpu-1"), rule({})]
    cluster = {"nodes": {}, "objects": objects}
    version_rule = {
        "name": "a tainted device is used",
        "given": cluster,
        "when": {"create": [wanting("web")]},
        "then": [{"placed": 1}],
    }
    (rules / "rule.yaml").write_text(json.dumps(version_rule))

    result = reprieve(rules, "--k8s", "1.36,1.37")

    assert [line for line in lines(result) if line[0] in "✓✗"] == [
        "✓ a tainted device is used [1.36]",
        "✗ a tainted device is used [1.37]",
    ]


@pytest.mark.parametrize("version", ["1.99", "new"])
def test_a_version_that_cannot_be_emulated(rules: Path, version: str) -> None:
    (rules / "rule.yaml").write_text(HOLDS)

    result = reprieve(rules, "--k8s", version)

    assert isinstance(result.exception, StartUpError)
    assert f"--k8s {version}: " in str(result.exception)


def test_golden_file_keeps_placements_and_later_runs_are_compared(rules: Path) -> None:
    (rules / "rule.yaml").write_text(HOLDS)
    golden = rules / "golden.yaml.txt"

    assert reprieve(rules, "--golden", golden, "--update").exit_code == 0
    assert "pods: {default/web: node}" in yaml_flow(golden)
    assert reprieve(rules, "--golden", golden).exit_code == 0

    (rules / "rule.yaml").write_text(HOLDS.replace("{cpu: 2}", "{cpu: 2, name: other}"))
    result = reprieve(rules, "--golden", golden)

    assert result.exit_code == 1
    assert f"    expected default/web: node, as in {golden}" in lines(result)
    assert "    but      other" in lines(result)


def test_an_eviction_is_compared_too(rules: Path) -> None:
    important = WEB.replace("name: web}", "name: important}").replace("spec:\n", "spec:\n  priority: 1000\n")
    (rules / "important.yaml").write_text(important)
    rule = (
        "given: {nodes: {cpu: 1}, existing: web.yaml}\nwhen: {apply: important.yaml}\nthen: [{pods: name=important, "
        "placed: 1}]\n"
    )
    (rules / "rule.yaml").write_text(rule)
    golden = rules / "golden.txt"
    reprieve(rules, "--golden", golden, "--update")

    (rules / "rule.yaml").write_text(rule.replace("cpu: 1", "cpu: 2"))
    result = reprieve(rules, "--golden", golden)

    assert f"    expected default/web: evicted from node, as in {golden}" in lines(result)
    assert "    but      not evicted" in lines(result)


def test_a_rule_that_the_golden_file_does_not_have_fails(rules: Path) -> None:
    (rules / "rule.yaml").write_text(HOLDS)
    golden = rules / "golden.txt"
    reprieve(rules, "--golden", golden, "--update")
    (rules / "rule.yaml").write_text(HOLDS + "---\n" + HOLDS)

    result = reprieve(rules, "--golden", golden)

    assert result.exit_code == 1
    assert "    but      it has none for this rule; --update writes them" in lines(result)


def test_missing_golden_file_is_an_error_that_names_the_option_to_write_it(rules: Path) -> None:
    (rules / "rule.yaml").write_text(HOLDS)

    result = reprieve(rules, "--golden", rules / "none.txt")

    assert isinstance(result.exception, StartUpError)
    assert str(result.exception).endswith("none.txt: no such file; --update writes it")


def yaml_flow(file: Path) -> str:
    (decisions,) = yaml.safe_load(file.read_text()).values()
    return f"pods: {yaml.safe_dump(decisions['pods'], default_flow_style=True).strip()}"
