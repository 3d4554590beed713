"""The plugin of pytest: fixtures for a cluster and a chart, failures that say why, and one line for each wrong use."""

import re
import shutil
from pathlib import Path

import pytest

import reprieve.charts
from tests.kit.tables import cases

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "chart-in-ci"
PAGE = ROOT / "docs" / "how-to" / "test-manifests.md"
HEAD = "import pytest\n"
FITS = "def test_it(reprieve_chart):\n    assert reprieve_chart.will_fit()\n"

assert reprieve.charts  # stays loaded in this process, with what cannot be loaded twice


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A copy of the example."""
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    return pytester


def test_example_passes(project: pytest.Pytester) -> None:
    project.runpytest_inprocess().assert_outcomes(passed=3)


def test_page_shows_what_a_failure_prints(project: pytest.Pytester) -> None:
    """It ends at the line of the test, and says why."""
    [expected] = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    chart = project.path / "shop.yaml"
    chart.write_text(chart.read_text().replace('cpu: "1"', 'cpu: "3"'))

    done = project.runpytest_inprocess("-k", "evicted")

    done.assert_outcomes(failed=1, deselected=2)
    assert expected in "".join(f"{line.rstrip()}\n" for line in done.outlines)


def test_cluster_is_that_of_the_command_line_before_that_of_the_configuration(project: pytest.Pytester) -> None:
    project.path.joinpath("nodes").mkdir()
    text = (EXAMPLE / "cluster.yaml").read_text()
    project.path.joinpath("nodes", "small.yaml").write_text(text.replace('cpu: "4"', 'cpu: "1"'))

    done = project.runpytest_inprocess("--reprieve-cluster=nodes/small.yaml", "-k", "evicted")

    done.stdout.fnmatch_lines(["E       AssertionError: shop.yaml: 2 evicted: *"])


def test_chart_may_be_a_text(project: pytest.Pytester) -> None:
    (project.path / "test_text.py").write_text(
        "import pytest\nfrom pathlib import Path\nCHART = Path('shop.yaml').read_text()\n\n\n"
        "@pytest.mark.reprieve_chart(CHART, namespace='shop')\ndef test_it(reprieve_chart):\n"
        "    assert len(reprieve_chart.pods) == 3\n"
    )

    project.runpytest_inprocess("test_text.py").assert_outcomes(passed=1)


def test_fixtures_may_be_replaced(project: pytest.Pytester) -> None:
    """By a cluster of objects, and by what helm prints when the test asks for it."""
    project.makeconftest(
        "import pytest\nfrom reprieve import Cluster\n\n\n@pytest.fixture(scope='session')\ndef reprieve_cluster():\n"
        "    node = {'kind': 'Node', 'metadata': {'name': 'n'}, 'status': {'allocatable': {'cpu': '9', 'pods': '9'}}}\n"
        "    return Cluster.load([node])\n\n\n"
        "@pytest.fixture(params=['c', '[c'])\ndef reprieve_manifests(request):\n"
        "    return 'kind: Pod\\nmetadata: {name: p}\\nspec: {containers: [{image: i, name: %s}]}' % request.param\n"
    )
    project.makepyfile(test_own="def test_it(reprieve_chart):\n    assert reprieve_chart.pods == {'default/p': 'n'}\n")

    done = project.runpytest_inprocess("test_own.py")

    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(
        ["*ERROR at setup of test_it*", "yaml: line 3: *", "*short test summary*"], consecutive=True
    )


@cases(
    "marked, configuration, line",
    (
        "no cluster",
        "('shop.yaml')",
        "",
        "there is no cluster to try this in: give --reprieve-cluster=FILE, or reprieve_cluster in the configuration "
        "of pytest",
    ),
    (
        "no such cluster",
        "('shop.yaml')",
        "reprieve_cluster = gone.yaml",
        "state file {path}/gone.yaml: no such file or directory",
    ),
    (
        "a cluster of neither nodes nor pods",
        "('shop.yaml')",
        "reprieve_cluster = shop.yaml",
        "{path}/shop.yaml: it has *, but neither nodes nor pods; *",
    ),
    (
        "no chart",
        "",
        "reprieve_cluster = cluster.yaml",
        "there is no chart to try: mark the test with @pytest.mark.reprieve_chart(FILE)",
    ),
    (
        "no such chart",
        "('gone.yaml')",
        "reprieve_cluster = cluster.yaml",
        "{path}/gone.yaml: no such file or directory; give a file with Kubernetes objects, or - for standard input",
    ),
    (
        "no pods in the chart",
        "('monitor.yaml')",
        "reprieve_cluster = cluster.yaml",
        "monitor.yaml: ServiceMonitor, and no pod or workload in it",
    ),
    (
        "no such namespace",
        "('shop.yaml', namespace='web')",
        "reprieve_cluster = cluster.yaml",
        'Service web/shop: namespaces "web" not found',
    ),
)
def test_wrong_use_is_said_in_one_line(pytester: pytest.Pytester, marked: str, configuration: str, line: str) -> None:
    for name in ("cluster.yaml", "shop.yaml"):
        shutil.copy(EXAMPLE / name, pytester.path)
    (pytester.path / "monitor.yaml").write_text("apiVersion: a.b/v1\nkind: ServiceMonitor\nmetadata: {name: m}\n")
    pytester.makeini(f"[pytest]\n{configuration}\n")
    pytester.makepyfile(HEAD + (f"@pytest.mark.reprieve_chart{marked}\n" if marked else "") + FITS)

    done = pytester.runpytest_inprocess("--strict-markers", "-rN")

    done.assert_outcomes(errors=1)
    tail = done.outlines[done.outlines.index(next(text for text in done.outlines if "ERROR at setup" in text)) + 1 : -1]
    assert len(tail) == 1
    done.stdout.fnmatch_lines([line.format(path=pytester.path)])


def test_run_that_asks_for_nothing_loads_nothing(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile(
        "import sys\n\n\ndef test_it():\n"
        "    assert not {'numpy', 'extender', 'reprieve.library', 'reprieve.charts'} & {*sys.modules}\n"
        "    assert 'reprieve.pytest_plugin' in sys.modules\n"
    )

    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    pytester.runpytest_subprocess("-p", "reprieve").assert_outcomes(passed=1)


@pytest.mark.slow
def test_assertions_of_the_library_are_not_rewritten(pytester: pytest.Pytester) -> None:
    """As pytest does with all packages of a distribution that has a plugin, which takes longer than to load them."""
    pytester.makepyfile(
        "import sys\n\n\ndef test_it():\n    import reprieve.library\n"
        "    ours = [each for name, each in sys.modules.items() if name.partition('.')[0] in ('reprieve', 'extender')]\n"
        "    assert len(ours) > 100\n"
        "    rewritten = {each.__name__ for each in ours if 'Rewriting' in type(each.__spec__.loader).__name__}\n"
        "    assert rewritten <= {'reprieve', 'reprieve.pytest_plugin'}\n"
    )

    for how in ("--assert=rewrite", "--assert=plain"):
        pytester.runpytest_subprocess(how, "-p", "no:schemathesis").assert_outcomes(passed=1)
