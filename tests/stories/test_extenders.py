"""Extenders that a scheduler asks. Upstream: test/integration/scheduler/extender; pkg/scheduler/extender_test.go."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from extender.engine import framework as fwk
from extender.values.config.configuration import Extender, ExtenderManagedResource
from tests.kit.extenders import NO_FAILURES, InMemory, Says, an_extender, keeping, scoring
from tests.kit.objects import node, pod
from tests.kit.saying_plugins import filtering, scoring_nodes
from tests.kit.scene import Scene, a_scene
from tests.stories.conftest import OURS


@pytest.mark.over_a_socket
async def test_extenders_filter_score_and_bind_together() -> None:
    """TestSchedulerExtender: two are sent names and one is sent nodes; one binds; the one that manages another resource
    is not asked.

    The third scores 50 where the protocol asks for 0 to 10, and wins by it.
    """
    scenes: list[Scene] = []

    def binds(arguments: Any) -> Any:
        scenes[0].bind(arguments["PodName"], arguments["Node"])
        return {"Error": ""}

    memory = InMemory(
        one_filter=keeping("n1", "n2", "n3"), one_prioritize=scoring(n1=1, n2=10, n3=1),
        two_filter=keeping("n2", "n3", "n5"), two_prioritize=scoring(n2=1, n3=10, n5=1),
        three_filter=keeping("n1", "n2", "n3", "n4", "n5"), three_prioritize=scoring(n2=50, n3=1), three_bind=binds,
        four_filter=lambda _: 500,
    )  # fmt: skip
    verbs: dict[str, Any] = {"filter_verb": "filter", "prioritize_verb": "prioritize"}
    extenders = [
        an_extender("one", weight=3, node_cache_capable=False, **verbs),
        an_extender("two", weight=40, **verbs),
        an_extender("three", weight=10, bind_verb="bind", **verbs),
        an_extender("four", filter_verb="filter", managed_resources=(ExtenderManagedResource("example.com/gpu"),)),
    ]
    async with a_scene(
        *(node(f"n{number}") for number in range(1, 6)), extenders=extenders, transports=memory.transport
    ) as scene:
        scenes.append(scene)
        await scene.has(pod("p"))

        assert scene.node_of("p") == "n2"
        asked_of = [(extender, verb) for extender, verb, _ in memory.asked]
        assert sorted(asked_of) == [
            ("one", "filter"), ("one", "prioritize"), ("three", "bind"), ("three", "filter"), ("three", "prioritize"),
            ("two", "filter"), ("two", "prioritize"),
        ]  # fmt: skip
        assert [extender for extender, verb in asked_of if verb == "filter"] == ["one", "two", "three"]
        bodies = {extender: arguments for extender, verb, arguments in memory.asked if verb == "filter"}
        assert {item["metadata"]["name"] for item in bodies["one"]["Nodes"]["items"]} == {"n1", "n2", "n3", "n4", "n5"}
        assert sorted(bodies["two"]["NodeNames"]) == ["n1", "n2", "n3"]


FAILS: Says = lambda _: 500  # noqa: E731 - it stands beside others that are made
ALL = keeping("a", "b")
FILTERS: dict[str, Any] = {"filter_verb": "filter"}
SCORES: dict[str, Any] = {"prioritize_verb": "prioritize"}
GPU = (ExtenderManagedResource("example.com/gpu"),)

PREFERS_B = scoring_nodes({"b": 100})
NOWHERE = filtering(lambda *_: fwk.unschedulable("not here"))


@pytest.mark.parametrize(
    ("says", "extenders", "plugins", "goes_to"),
    [
        pytest.param(
            {"one_filter": ALL, "two_filter": FAILS}, [an_extender("one", **FILTERS), an_extender("two", **FILTERS)], [], {""},
            id="one that fails fails the pod",
        ),
        pytest.param(
            {"one_filter": ALL, "two_filter": keeping()}, [an_extender("one", **FILTERS), an_extender("two", **FILTERS)], [], {""},
            id="one that lets nothing pass",
        ),
        pytest.param(
            {"one_filter": ALL, "two_filter": keeping("a")}, [an_extender("one", **FILTERS), an_extender("two", **FILTERS)], [], {"a"},
            id="one that lets one node pass",
        ),
        pytest.param(
            {"one_filter": keeping("b"), "two_filter": keeping("a")}, [an_extender("one", **FILTERS), an_extender("two", **FILTERS)], [],
            {""}, id="two that do not agree",
        ),
        pytest.param(
            {"one_filter": keeping("a"), "one_prioritize": FAILS}, [an_extender("one", weight=1, **FILTERS, **SCORES)], [], {"a"},
            id="one that cannot score",
        ),
        pytest.param(
            {"one_prioritize": scoring(a=10), "two_prioritize": scoring(b=10)},
            [an_extender("one", weight=1, **SCORES), an_extender("two", weight=50, **SCORES)], [], {"b"},
            id="of two that score, the one of greater weight",
        ),
        pytest.param(
            {"one_prioritize": scoring(a=9)}, [an_extender("one", weight=1, **SCORES)], [PREFERS_B], {"b"},
            id="a plugin that outweighs it",
        ),
        pytest.param(
            {"one_filter": keeping("a"), "two_filter": FAILS, "two_prioritize": FAILS},
            [an_extender("one", **FILTERS), an_extender("two", weight=9, managed_resources=GPU, **FILTERS, **SCORES)], [], {"a"},
            id="one that fails is not interested",
        ),
        pytest.param(
            {"one_filter": keeping("a"), "two_filter": FAILS},
            [an_extender("one", **FILTERS), an_extender("two", ignorable=True, **FILTERS)], [], {"a"},
            id="one that fails may be ignored",
        ),
        pytest.param({"one_filter": ALL}, [an_extender("one", **FILTERS)], [], {"a", "b"}, id="no extender scores, both nodes pass"),
        pytest.param({"one_filter": keeping("b")}, [an_extender("one", **FILTERS)], [], {"b"}, id="no extender scores, one node passes"),
    ],
)  # fmt: skip
@pytest.mark.anywhere
async def test_a_pod_goes_where_its_extenders_want_it(
    says: dict[str, Says], extenders: list[Extender], plugins: list[type[fwk.Plugin]], goes_to: set[str]
) -> None:
    """TestSchedulerWithExtenders, its eleven cases."""
    memory = InMemory(**says)
    async with a_scene(
        node("a"), node("b"), extenders=extenders, transports=memory.transport, plugins=plugins
    ) as scene:
        await scene.has(pod("p"), within=0.5)

        assert scene.node_of("p") in goes_to


@pytest.mark.anywhere
async def test_only_feasible_node_is_not_scored() -> None:
    memory = InMemory(one_filter=keeping("b"), one_prioritize=scoring(b=1))
    extenders = [an_extender("one", weight=1, **FILTERS, **SCORES)]
    async with a_scene(node("a"), node("b"), extenders=extenders, transports=memory.transport) as scene:
        await scene.has(pod("p"))

        assert scene.node_of("p") == "b"
        assert [verb for _, verb, _ in memory.asked] == ["filter"]


@pytest.mark.anywhere
async def test_extenders_are_not_asked_about_pods_that_fit_nowhere_anyhow() -> None:
    memory = InMemory(one_filter=ALL)
    plugins = [NOWHERE]
    async with a_scene(
        node("a"), node("b"), extenders=[an_extender("one", **FILTERS)], transports=memory.transport, plugins=plugins
    ) as scene:
        await scene.has(pod("p"), within=0.5)

        assert (scene.node_of("p"), memory.asked) == ("", [])


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        pytest.param(
            {"failed": {"a": "one minds"}},
            {"failed": {"b": "two minds"}},
            "1 one minds, 1 two minds",
            id="each speaks of its nodes",
        ),
        pytest.param({"failed": {"a": "why"}, "unresolvable": {"a": "never"}}, {}, "1 never", id="for good counts"),
    ],
)
@pytest.mark.anywhere
async def test_condition_contains_the_refusals_of_extenders(
    one: dict[str, Any], two: dict[str, Any], message: str
) -> None:
    """TestFindNodesThatPassExtenders: nodes that were refused for good cannot be won by preemption."""
    memory = InMemory(
        one_filter=keeping(*({"a", "b"} - set(one.get("failed", {}))), **one),
        two_filter=keeping(*({"a", "b"} - set(two.get("failed", {"b": ""}))), **two),
    )
    extenders = [an_extender("one", **FILTERS), an_extender("two", **FILTERS)]
    async with a_scene(node("a"), node("b"), extenders=extenders, transports=memory.transport) as scene:
        await scene.has(pod("p"), within=0.5)

        condition = scene.condition("p")
        assert condition is not None
        assert condition[:2] == ("False", "Unschedulable")
        assert message in condition[2]


@pytest.mark.parametrize(
    ("extender", "says", "expected_verbs", "is_bound"),
    [
        pytest.param(an_extender("one", bind_verb="bind"), "binds", ["bind"], True, id="an extender that binds"),
        pytest.param(
            an_extender("one", filter_verb="filter"), "binds", ["filter"], True, id="an extender that does not"
        ),
        pytest.param(
            an_extender("one", bind_verb="bind", managed_resources=GPU),
            "binds",
            [],
            True,
            id="an extender for other pods",
        ),
        pytest.param(
            an_extender("one", bind_verb="bind", ignorable=True), "fails", ["bind"], True, id="one that fails and may"
        ),
        pytest.param(an_extender("one", bind_verb="bind"), "fails", ["bind"], False, id="one that fails and may not"),
    ],
)
@pytest.mark.anywhere
async def test_a_pod_is_bound_by_the_extender_that_binds_it_or_else_as_ever(
    extender: Extender, says: str, expected_verbs: list[str], is_bound: bool
) -> None:
    """TestSchedulerBinding."""
    scenes: list[Scene] = []

    def bind(arguments: Any) -> Any:
        if says == "fails":
            return {"Error": "not today"}
        scenes[0].bind(arguments["PodName"], arguments["Node"])
        return {"Error": ""}

    memory = InMemory(one_bind=bind, one_filter=lambda arguments: NO_FAILURES | {"NodeNames": arguments["NodeNames"]})
    async with a_scene(node("a"), extenders=[extender], transports=memory.transport) as scene:
        scenes.append(scene)
        await scene.has(pod("p"), within=0.5)

        assert [verb for _, verb, _ in memory.asked] == expected_verbs
        assert scene.node_of("p") == ("a" if is_bound else "")


class GpuExtender(BaseHTTPRequestHandler):
    """An extender of its own on a real socket that alone knows of GPUs: each pod needs one, each node has one."""

    holders: ClassVar[dict[str, str]]
    """Node -> the UID of the pod that has its GPU, which keeps it until the pod has gone."""
    verbs: ClassVar[list[tuple[str, Any]]]

    def do_POST(self) -> None:
        arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.strip("/")
        self.verbs.append((verb, arguments))
        body = json.dumps(getattr(self, verb.replace("-", "_"))(arguments)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def filter(self, arguments: Any) -> Any:
        nodes = (arguments["Nodes"] or {}).get("items") or []
        names = arguments["NodeNames"] or [item["metadata"]["name"] for item in nodes]
        free = [name for name in names if not self.holders.get(name)]
        passing = {"Nodes": {"items": [item for item in nodes if item["metadata"]["name"] in free]}, "NodeNames": free}
        return passing | {"FailedNodes": {name: "no GPU left" for name in names if name not in free}}

    def preempt(self, arguments: Any) -> Any:
        proposed = arguments["NodeNameToMetaVictims"] or arguments["NodeNameToVictims"]
        return {
            "NodeNameToMetaVictims": {
                name: {"Pods": [{"UID": self.holders[name]}], "NumPDBViolations": 0}
                for name in proposed
                if self.holders.get(name)
            }
        }

    def pass_on(self, arguments: Any) -> Any:
        proposed = arguments["NodeNameToMetaVictims"] or arguments["NodeNameToVictims"]
        victims = {
            name: {"Pods": [{"UID": victim.get("UID") or victim["metadata"]["uid"]} for victim in entry["Pods"] or []]}
            for name, entry in proposed.items()
        }
        return {"NodeNameToMetaVictims": victims}

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def gpus() -> Iterator[tuple[type[GpuExtender], str]]:
    """The extender, and its address."""
    extender: Any = type("Gpus", (GpuExtender,), {"holders": {}, "verbs": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), extender) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield extender, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("stage", [OURS], indirect=True)
@pytest.mark.parametrize("by_name", [pytest.param(True, id="by name"), pytest.param(False, id="in full")])
@pytest.mark.parametrize("chain", [["preempt"], ["pass-on", "preempt"], ["preempt", "pass-on"]], ids=" then ".join)
async def test_an_extender_that_alone_knows_of_gpus_frees_one(
    gpus: tuple[type[GpuExtender], str], chain: list[str], by_name: bool
) -> None:
    """Its filter refuses the only node, for plugins the pod fits there, and its preempt names who has to go. Of two
    extenders one has nothing to add.
    """
    extender, address = gpus
    extenders = [
        Extender(
            url_prefix=address,
            filter_verb="filter" if verb == "preempt" else "",
            preempt_verb=verb,
            node_cache_capable=by_name,
        )
        for verb in chain
    ]
    async with a_scene(node("n"), extenders=extenders) as scene:
        await scene.has(pod("low", "100m", "low", stays=True), pod("other", "100m", "low"))
        extender.holders["n"] = scene.pod("low")["metadata"]["uid"]
        await scene.has(pod("high", "100m", "high"))

        assert (scene.leaving(), scene.nominated_node_of("high")) == ({"low"}, "n")
        del extender.holders["n"]
        await scene.lets_go("low")

        assert (scene.node_of("high"), scene.pods()) == ("n", {"high", "other"})
        form = "NodeNameToMetaVictims" if by_name else "NodeNameToVictims"
        sent_victims = [arguments[form]["n"]["Pods"] for verb, arguments in extender.verbs if verb == chain[0]]
        assert [pods or [] for pods in sent_victims] == [[]]


@pytest.mark.slow
@pytest.mark.parametrize("stage", [OURS], indirect=True)
async def test_a_pod_that_an_extender_without_a_preempt_verb_refuses_evicts_nobody(
    gpus: tuple[type[GpuExtender], str],
) -> None:
    extender, address = gpus
    alone = Extender(url_prefix=address, filter_verb="filter", node_cache_capable=True)
    async with a_scene(node("n"), extenders=[alone]) as scene:
        await scene.has(pod("low", "100m", "low"))
        extender.holders["n"] = "somebody"
        await scene.has(pod("high", "100m", "high"))

        condition = scene.condition("high")
        assert condition is not None
        assert condition[2].endswith(
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        )
        assert scene.node_of("low") == "n"
