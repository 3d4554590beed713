"""The plugin of pytest: fixtures for a cluster, and for what becomes of a chart in it.

Every run of pytest imports it where Reprieve is installed, so that it loads the library when a test asks for a fixture.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from reprieve import Chart, Cluster

T = TypeVar("T")

_CLUSTER: Final = "the cluster in which charts are tried: what `kubectl get ... -o yaml` printed, or a recording"
_CHART: Final = "reprieve_chart(chart, *, namespace='default'): what is tried: a text, file or folder"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    with suppress(AttributeError):
        # pytest rewrites the assertions in all packages of a distribution with a plugin: a second, for none.
        pluginmanager.rewrite_hook._must_rewrite -= {"api", "extender", "reprieve"}  # type: ignore[attr-defined]
    parser.getgroup("reprieve").addoption("--reprieve-cluster", metavar="FILE", help=_CLUSTER)
    parser.addini("reprieve_cluster", _CLUSTER, type="paths")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _CHART)


@pytest.fixture(scope="session")
def reprieve_cluster(pytestconfig: pytest.Config) -> "Cluster":
    """The cluster of --reprieve-cluster, read once; `reprieve_cluster.chart()` and `.trial()` try things in it."""
    from reprieve import Cluster  # noqa: PLC0415 - see above

    option, paths = pytestconfig.getoption("reprieve_cluster"), pytestconfig.getini("reprieve_cluster")
    if option:
        paths = [pytestconfig.invocation_params.dir / option]
    if not paths:
        usage = "give --reprieve-cluster=FILE, or reprieve_cluster in the configuration of pytest"
        pytest.fail(f"there is no cluster to try this in: {usage}", pytrace=False)
    return _in_one_line(Cluster.load, paths[0])


@pytest.fixture
def reprieve_manifests(request: pytest.FixtureRequest) -> "str | Path":
    """What the marker names: a text as it is, a file or folder beside the test. One of your own may run helm."""
    marker = request.node.get_closest_marker("reprieve_chart")
    if marker is None or len(marker.args) != 1:
        pytest.fail("there is no chart to try: mark the test with @pytest.mark.reprieve_chart(FILE)", pytrace=False)
    chart = str(marker.args[0])
    return chart if "\n" in chart else request.path.parent / chart


@pytest.fixture
def reprieve_chart(
    request: pytest.FixtureRequest, reprieve_cluster: "Cluster", reprieve_manifests: "str | Path"
) -> "Chart":
    """What becomes of the chart in the cluster."""
    marker = request.node.get_closest_marker("reprieve_chart") or pytest.mark.reprieve_chart.mark
    return _in_one_line(reprieve_cluster.chart, reprieve_manifests, **marker.kwargs)


def _in_one_line(read: Callable[..., T], *args: object, **kwargs: object) -> T:
    from reprieve import ReprieveError  # noqa: PLC0415 - see above

    try:
        return read(*args, **kwargs)
    except ReprieveError as exc:
        raise pytest.fail.Exception(str(exc), pytrace=False) from None
