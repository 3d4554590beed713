"""What the library returns shows itself: in a line, as a table that is safe in a notebook, and as a data frame."""

import inspect
import pickle
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from html.parser import HTMLParser
from typing import Any, get_args, get_type_hints

import msgspec
import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

from reprieve import Capacity, Cluster, NodeArrays, Placement, PreemptionAnswer, ReprieveError, Trial, plugin as fwk
from tests.reprieve.test_library import NO_PREEMPTION, node, pod

HOSTILE = "<script>alert('x')</script>&\"\n\x1b[31m\u202e"
OF_HIGH_PRIORITY = pod("high", "4", priority=10)


@pytest.fixture
def cluster() -> Cluster:
    pods = [pod("low-0", "3", on="a", priority=1), pod("low-1", "2", on="b", priority=5), pod("waits", "9")]
    return Cluster.load([node("a"), node("b"), *pods])


@pytest.fixture
def trial(cluster: Cluster) -> Iterator[Trial]:
    with cluster.trial() as opened:
        yield opened


def shown_by(trial: Trial, cluster: Cluster) -> dict[str, Any]:
    """One of each."""
    return {
        "Cluster": cluster,
        "Trial": trial,
        "Placement": trial.schedule()[0],
        "Placements": trial.schedule(scores=True),
        "PreemptionAnswer": trial.preempt(OF_HIGH_PRIORITY),
        "Explanation": trial.why(pod("huge", "9")),
        "Capacity": trial.fits(pod("x")),
        "NodeArrays": trial.nodes(pod("x")),
    }


# A line.


def test_each_says_in_a_line_what_matters(trial: Trial, cluster: Cluster) -> None:
    texts = {name: repr(value) for name, value in shown_by(trial, cluster).items()}

    waits = "default/waits is pending: 0/2 nodes are available: 2 Insufficient cpu."
    assert texts["Cluster"] == "<Cluster: 2 nodes, 3 pods, 1 of them pending>"
    assert texts["Trial"] == "<Trial: 2 nodes, 3 pods, 1 of them pending; steps: 2>"
    assert texts["Placement"] == f"<Placement: {waits}>"
    assert texts["PreemptionAnswer"] == "<PreemptionAnswer: on a, evicting default/low-0>"
    assert texts["Explanation"].startswith("<Explanation: default/huge: It fits on none of 2 nodes: NodeResourcesFit")
    assert texts["Capacity"] == "<Capacity: 3 fit; 0/2 nodes are available: 2 Insufficient cpu.>"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (Placement("ns/a", "n1", scores={"Fit": 100}), "<Placement: ns/a on n1>"),
        (PreemptionAnswer(eligible=True, node="n1"), "<PreemptionAnswer: on n1, evicting no pod>"),
        (PreemptionAnswer(eligible=False, message="not eligible due to x."), "<PreemptionAnswer: not eligible due to x.>"),
        (Capacity(fits=5000, by_node=(), stopped_by="", notes=("counting ends",)), "<Capacity: 5,000 fit; counting ends>"),
        (Cluster.load([]), "<Cluster: 0 nodes, 0 pods, 0 of them pending>"),
    ],
)  # fmt: skip
def test_a_line_leaves_out_what_is_not_there(value: object, line: str) -> None:
    assert repr(value) == line


def test_a_trial_is_looked_at_without_being_changed(trial: Trial) -> None:
    trial.schedule(
        [pod("x"), {"kind": "ServiceMonitor", "apiVersion": "monitoring.coreos.com/v1", "metadata": {"name": "m"}}]
    )
    notes = trial.notes

    with trial.step():
        assert repr(trial) == "<Trial: 2 nodes, 4 pods, 1 of them pending; steps: 0>"
        trial.drain("b")

    assert trial.notes == ()
    assert notes
    assert repr(trial) == "<Trial: 2 nodes, 4 pods, 3 of them pending; steps: 2>"
    trial.undo(2)
    assert repr(trial) == "<Trial: 2 nodes, 3 pods, 1 of them pending; steps: 0>"


def test_a_trial_that_is_over_says_so(cluster: Cluster) -> None:
    with cluster.trial() as trial:
        pass

    assert repr(trial) == "<Trial: it is over>"
    assert "<caption>Trial: it is over</caption>" in trial._repr_html_()


# A table.


class Cells(HTMLParser):
    """The elements and texts of a table; whatever else a browser would see in it is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.caption = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert (tag in ("table", "caption", "tr", "th", "td"), attrs) == (True, []), tag
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] == "caption":
            self.caption += data
        else:
            self.rows[-1][-1] += data


def test_a_notebook_shows_a_table(trial: Trial, cluster: Cluster) -> None:
    """As IPython asks what is displayed."""
    tables = {}
    for name, value in shown_by(trial, cluster).items():
        formats, _ = DisplayFormatter().format(value)
        assert formats["text/plain"]
        tables[name] = Cells(formats["text/html"])

    assert tables["Cluster"].rows == [["kind", "objects"], ["Node", "2"], ["Pod", "3"]]
    assert tables["Capacity"].rows == [["node", "pods"], ["b", "2"], ["a", "1"]]
    assert tables["Capacity"].caption == "Capacity: 3 fit; 0/2 nodes are available: 2 Insufficient cpu."
    assert tables["PreemptionAnswer"].rows[1][0] == "default/low-0"
    assert tables["Explanation"].rows[:2] == [["it would fit if you", "nodes"], ["ask for 2 of cpu instead of 9", "1"]]
    assert tables["Placement"].rows == [
        ["pod", "node", "message"],
        ["default/waits", "", "0/2 nodes are available: 2 Insufficient cpu."],
    ]
    assert tables["NodeArrays"].rows[0][:5] == ["node", "pods", "feasible", "reason", "score.TaintToleration"]
    assert [row[:4] for row in tables["NodeArrays"].rows[1:]] == [["a", "1", "True", ""], ["b", "1", "True", ""]]


@fwk.node_filter
def refuses_in_markup(pod: fwk.Pod, node: fwk.NodeInfo) -> str | None:
    return HOSTILE if pod.name == "refused" else None


@pytest.mark.parametrize(
    "name", [HOSTILE, "</td></table><img src=x onerror=alert(1)>", "&lt;b&gt;", "\u2028\x00\ud800"]
)
def test_no_name_and_no_message_is_markup_or_moves_a_cursor(name: str) -> None:
    hostile_node = node(name, app="x")
    hostile_node["status"]["allocatable"][f"{name}/gpu"] = "1"
    objects = [hostile_node, pod(name), pod(f"{name}-low", "4", on=name, priority=0)]
    cluster = Cluster.load(objects)
    with cluster.trial(plugins=[refuses_in_markup]) as trial:
        values = shown_by(trial, cluster) | {"reasons": trial.nodes(pod("refused", "0"))}
    assert "<script>" in values["reasons"].reasons[0]
    values["message"] = Placement(name, message=f"0/1 nodes are available: {name}")
    values["victims"] = trial_of(name).preempt(OF_HIGH_PRIORITY)

    for value in values.values():
        cells = Cells(value._repr_html_())
        assert cells.caption.isprintable()
        assert all(cell.isprintable() for row in cells.rows for cell in row)
        assert all(line.isprintable() for line in str(value).split("\n"))
    escaped = Cells(values["message"]._repr_html_()).rows[1][0]
    assert escaped == name or not name.isprintable()


def trial_of(name: str) -> Trial:
    return Cluster.load([node(name), pod(name, "4", on=name, priority=0)]).trial()


def test_a_large_cluster_prints_little() -> None:
    """5,000 nodes with long names, and as many pods."""
    long = "n" * 200
    objects = [node(f"{long}-{number}") for number in range(5000)] + [pod(f"{long}-{number}") for number in range(100)]
    cluster = Cluster.load(objects)
    with cluster.trial() as trial:
        nodes, placed = trial.nodes(), trial.schedule()
        values = [cluster, trial, nodes, placed, placed[0], trial.fits(pod("x"))]

        assert [value for value in values if len(str(value)) > 2048] == []
        assert [len(text) for value in values if len(text := value._repr_html_()) > 20_000] == []
        assert len(cluster._repr_html_()) < 2048
        assert len(repr(cluster)) < 100

    assert str(nodes).splitlines()[-1] == "and 4,992 more"
    assert Cells(nodes._repr_html_()).rows[-1][:2] == ["and 4,992 more", ""]
    assert str(placed).splitlines()[-1] == "and 92 more"


def test_a_text_of_any_length_is_cut() -> None:
    long = "x" * 1_000_000
    victims = trial_of("n").preempt(OF_HIGH_PRIORITY).victims * 10_000

    for value in (
        Placement(long, message=long),
        Capacity(fits=1, by_node=(), stopped_by=long),
        PreemptionAnswer(eligible=True, node=long, victims=victims),
    ):
        assert len(repr(value)) < 200
        assert repr(value).endswith("…>")
        assert len(value._repr_html_()) < 10_000


def test_nodes_print_as_a_table(trial: Trial) -> None:
    nodes, of_a_pod = str(trial.nodes()), str(trial.nodes(pod("x", "2")))

    heads = "node  pods  feasible  reason  requested.cpu  requested.memory"
    assert nodes.startswith(f"NodeArrays: 2 of 2 nodes are feasible\n{heads}")
    assert nodes.splitlines()[2].split()[:4] == ["a", "1", "True", "3000"]
    assert of_a_pod.splitlines()[0] == "NodeArrays: 1 of 2 nodes are feasible"
    assert of_a_pod.splitlines()[2].startswith("a     1     False     Insufficient cpu  0 ")


# Comparisons.


def test_nodes_compare(trial: Trial) -> None:
    nodes = trial.nodes()

    assert (nodes == trial.nodes()) is True
    assert hash(nodes) == hash(trial.nodes())
    assert len({nodes, trial.nodes()}) == 1
    assert (nodes == trial.nodes(pod("x", "2"))) is False
    assert (nodes != trial.nodes(pod("x", "2"))) is True
    assert [nodes == other for other in (None, "a", nodes.pods, nodes.names)][:2] == [False, False]
    trial.evict("low-0")
    assert nodes != trial.nodes()
    trial.add_nodes(like="a")
    assert nodes != trial.nodes()
    trial.undo(2)
    assert nodes == trial.nodes()


def test_placements_are_a_list(trial: Trial) -> None:
    placed = trial.schedule([pod("x", "2"), pod("y", "2")])

    assert isinstance(placed, list)
    assert placed == [Placement("default/x", "b"), Placement("default/y", message=placed[1].message)]
    assert placed[0] == Placement("default/x", "b")
    assert pickle.loads(pickle.dumps(placed)) == placed
    assert len({*placed, *placed}) == 2


# Data frames.


def framed_by(trial: Trial, cluster: Cluster) -> dict[str, Any]:
    framed = ("Placements", "PreemptionAnswer", "Capacity", "NodeArrays")
    return {name: value for name, value in shown_by(trial, cluster).items() if name in framed}


FRAMES = [pytest.param("pandas", marks=pytest.mark.slow), "polars"]
"""To import pandas takes a second of processor time."""


@pytest.mark.parametrize("library", FRAMES)
def test_each_becomes_a_data_frame(library: str, trial: Trial, cluster: Cluster) -> None:
    frames = {name: getattr(value, f"to_{library}")() for name, value in framed_by(trial, cluster).items()}

    assert {type(frame).__module__.split(".")[0] for frame in frames.values()} == {library}
    nodes = frames["NodeArrays"]
    assert len(nodes) == 2
    assert list(nodes["node"]) == ["a", "b"]
    assert list(nodes["requested.cpu"]) == [3000, 2000]
    assert list(nodes["feasible"]) == [True, True]
    assert list(frames["Placements"]["message"]) == ["0/2 nodes are available: 2 Insufficient cpu."]
    victims = frames["PreemptionAnswer"]
    assert list(victims.columns) == ["pod", "started", "owner", "violates", "cpu", "memory", "gpu_hours", "priority"]
    assert [*map(list, (victims["pod"], victims["cpu"], victims["priority"]))] == [["default/low-0"], [3000], [1]]
    assert list(frames["Capacity"]["pods"]) == [2, 1]


@pytest.mark.parametrize("library", FRAMES)
def test_a_data_frame_has_all_rows_and_scores(library: str) -> None:
    objects = [node("a", "1"), node("b", "1"), *(pod(f"x{number}", "5m") for number in range(410))]
    with Cluster.load(objects).trial(NO_PREEMPTION) as trial:
        placed = trial.schedule(scores=True)

    frame = getattr(placed, f"to_{library}")()

    assert len(frame) == 410
    points = list(frame["score.NodeResourcesFit"])
    assert points[0] == placed[0].scores["NodeResourcesFit"]
    assert placed[-1].scores == {}
    assert points[-1] is None or np.isnan(points[-1])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named_in_a_line(
    library: str, trial: Trial, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)

    for value in framed_by(trial, cluster).values():
        with pytest.raises(ReprieveError) as refused:
            getattr(value, f"to_{library}")()

        assert str(refused.value).startswith(f"a DataFrame needs {library}: pip install '.[{library}]'")
        assert "\n" not in str(refused.value)


# Words about fields.


def types_below(kind: type) -> Iterator[type]:
    """The type, and those that it is made of."""
    yield kind
    for hint in get_type_hints(kind).values():
        for part in (hint, *get_args(hint)):
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                yield from types_below(part)


@pytest.mark.parametrize("kind", [Capacity, PreemptionAnswer, NodeArrays, Placement])
def test_help_explains_every_field(kind: type) -> None:
    for part in types_below(kind):
        names = [field.name for field in (fields(part) if is_dataclass(part) else msgspec.structs.fields(part))]
        doc = inspect.getdoc(part) or ""

        assert [name for name in names if f"`{name}`" not in doc and f"{name}: " not in doc and f"{name}, " not in doc] == [], part  # fmt: skip
