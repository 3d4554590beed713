"""Whatever /v1 is asked has one clear answer, soon; and nobody who asks keeps the scheduler waiting."""

import asyncio
import inspect
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import uvicorn.server
from starlette.types import Message, Receive, Scope, Send

from api.app import create_app
from api.service_state import ServiceState
from api.serving.limits import RequestLimits
from api.settings.settings import Settings
from extender.values import limits
from tests.api.fake_engines import FailingEngine
from tests.api.test_questions import pod
from tests.kit.objects import obj, owner
from tests.kit.service import JSON, Service, assert_is_refusal, serving
from tests.kit.tables import cases

CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
LONG = 2**20
A_SPEC = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "w"}}, "spec": A_SPEC}
NODES = [f"node-{place}" for place in range(3)]
NO_ROOM = "shop/q would be unschedulable: 0/3 nodes are available: 3 Insufficient cpu."
BOMB = "a: &a [x,x,x]\n" + "".join(f"{b}: &{b} [{f'*{a},' * 9}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))


@pytest.fixture(scope="module")
def service(dump: Path) -> Iterator[Service]:
    with serving(state=dump, schedule=False) as service:
        yield service


@pytest.fixture(autouse=True)
def nothing_changes(service: Service) -> Iterator[None]:
    """After each question the service answers, and the cluster is as it was."""
    before = service.client.get("/v1/cluster").content
    yield
    assert service.client.get("/v1/cluster").content == before
    assert service.client.get("/readyz").status_code == 200


ENDING = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}


def workload(kind: str, api_version: str = "apps/v1", name: str = "w", **spec: Any) -> dict[str, Any]:
    return obj(kind, api_version, name, spec={"selector": {"matchLabels": {"app": "w"}}, "template": TEMPLATE, **spec})


def node(**allocatable: str) -> dict[str, Any]:
    return obj("Node", name="new", status={"allocatable": allocatable})


def with_metadata(obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def owned_by(name: str, other: str) -> dict[str, Any]:
    return with_metadata(pod(name, "1"), uid=f"uid-{name}", ownerReferences=[owner(name=other, uid=f"uid-{other}")])


def with_number(text: bytes) -> bytes:
    return b'{"create":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"priority":' + text + b"}}]}"


def nested(levels: int) -> bytes:
    return b'{"create":[{"x":' + b"[" * levels + b"]" * levels + b"}]}"


# What is no question.


@pytest.mark.parametrize("path", ["/v1/whatif", "/v1/capacity"])
@cases(
    "body, code",
    ("nothing", b"", 400),
    ("null", b"null", 400),
    ("a list", b"[]", 400),
    ("cut off", b"{", 400),
    ("a byte order mark", b"\xef\xbb\xbf{}", 400),
    ("no UTF-8", b'{"create":[{"x":"\xff"}]}', 400),
    ("half a character", b'{"drainNodes":["\\ud800"]}', 400),
    ("deep", nested(65), 400),
    ("very deep", nested(100_000), 400),
    ("very deep, and never closed", b'{"create":' + b"[" * 100_000, 400),
    ("NaN", with_number(b"NaN"), 400),
    ("beyond any number", with_number(b"1e400"), 400),
    ("5,000 digits", with_number(b"9" * 5000), 400),
    ("millions of values", b'{"create":[' + b"0," * (limits.JSON_VALUES + 1) + b"0]}", 413),
    ("too long", b" " * (limits.QUESTION_BYTES + 1), 413),
)
def test_malformed_or_oversized_question_is_refused(service: Service, path: str, body: bytes, code: int) -> None:
    answer = service.post(path, body)

    assert_is_refusal(answer, code)
    assert len(answer.content) < 1000


@cases(
    "question",
    ("unknown", {"creat": []}),
    ("null", {"create": None}),
    ("no list", {"create": {}}),
    ("no object", {"create": [5]}),
    ("no name", {"drainNodes": [5]}),
    ("no list of names", {"drainNodes": "node-0"}),
    ("neither yes nor no", {"includePending": "yes"}),
    ("no configuration", {"configuration": []}),
)
def test_members_of_a_what_if_are_of_their_types(service: Service, question: object) -> None:
    assert_is_refusal(service.post("/v1/whatif", question), 400)


@cases(
    "path, question, words",
    ("a part", "whatif", {"drain": ["node-0"]}, "unknown field `drain`; did you mean drainNodes?"),
    ("in small letters", "whatif", {"drainnodes": []}, "did you mean drainNodes?"),
    ("as Python writes it", "whatif", {"include_pending": True}, "did you mean includePending?"),
    (
        "inside",
        "whatif",
        {"addNodes": [{"like": "node-0", "cuont": 2}]},
        "unknown field `cuont` - at `$.addNodes[0]`; did you mean count?",
    ),
    ("of a plan", "plan", {"maxMove": 3}, "did you mean maxMoves?"),
    ("of a plan that frees nodes", "plan", {"freeNode": 3}, "did you mean freeNodes?"),
)
def test_name_that_a_member_may_have_meant_is_told(service: Service, path: str, question: object, words: str) -> None:
    answer = service.post(f"/v1/{path}", question)

    assert_is_refusal(answer, 400)
    assert answer.json()["message"].endswith(words)


def test_member_that_is_like_none_has_no_suggestion(service: Service) -> None:
    assert "did you mean" not in service.post("/v1/whatif", {"zzz": 1}).json()["message"]


@cases(
    "path, words",
    ("a slip of the pen", "explain/shop/urgnt", "; did you mean shop/urgent?"),
    ("another namespace", "explain/default/urgent", "; did you mean shop/urgent?"),
    ("a part of the name", "capacity?pod=shop/urgen", "; did you mean shop/urgent?"),
    ("a node", "cluster/node0", "; did you mean node-0?"),
    ("nothing like it", "explain/shop/elsewhere", "no recent decision about one"),
    ("what has no name", "decisions/4711", "the oldest are dropped first"),
)
def test_pod_or_node_that_may_be_meant_is_told_of_one_that_is_missing(service: Service, path: str, words: str) -> None:
    answer = service.client.get(f"/v1/{path}")

    assert_is_refusal(answer, 404)
    assert answer.json()["message"].endswith(words)


def test_last_of_two_equal_members_counts(service: Service) -> None:
    answer = service.post("/v1/whatif", b'{"drainNodes":["nowhere"],"drainNodes":[]}')

    assert (answer.status_code, answer.json()["summary"]) == (200, "Nothing would change.")


# What makes no sense.


@cases(
    "create, words",
    ("nothing", [{}], "has no kind"),
    ("a number for a kind", [{"kind": 5}], "has no kind"),
    ("no metadata", [{"kind": "Pod", "metadata": 5}], "needs an apiVersion and metadata"),
    ("a list of no objects", [{"kind": "List", "items": [5]}], "an item is no object"),
    ("an unknown kind", [obj("Gizmo")], "not known here"),
    ("a negative request", [pod("q", "-1")], "greater than or equal to 0"),
    ("an absurd request", [pod("q", "1e999")], "exponents of quantities"),
    ("a long request", [pod("q", "1" * 200)], "quantities"),
    ("a node with less than nothing", [node(cpu="-1", pods="-5")], "greater than or equal to 0"),
    ("a node with a list", [obj("Node", status={"allocatable": [1]})], "cannot unmarshal array"),
    ("an owner without a name", [with_metadata(pod("q", "1"), ownerReferences=[{}])], "ownerReferences"),
    ("a number of owners", [with_metadata(pod("q", "1"), ownerReferences=5)], "cannot unmarshal number"),
    ("an unknown class", [obj("Pod", spec=A_SPEC | {"priorityClassName": "nope"})], "no PriorityClass with name nope"),
    ("less than no replicas", [workload("Deployment", replicas=-1)], "spec.replicas"),
    ("a billion replicas", [workload("Deployment", replicas=10**9)], "more than 5000 pods"),
    ("more replicas than a number holds", [workload("Deployment", replicas=2**63)], "cannot be handled"),
    ("a pod and a half", [workload("Deployment", replicas=1.5)], "cannot be handled"),
    ("a billion ordinals", [workload("StatefulSet", replicas=10**9, serviceName="s")], "more than 5000 pods"),
    ("a billion at a time", [workload("Job", "batch/v1", parallelism=10**9, template=ENDING)], "more than 5000 pods"),
    ("in all", [workload("Deployment", name=f"d{place}", replicas=3000) for place in range(50)], "more than 5000 pods"),
    ("10,000 pods", [pod(f"p{place}", "1m") for place in range(10_000)], "more than 5000 pods"),
    ("20,001 objects", [obj("Node")] * 20_001, "more than 20000 objects"),
    ("a number for a template", [workload("CronJob", "batch/v1", jobTemplate=5)], "jobTemplate"),
    ("no template", [obj("ReplicaSet", "apps/v1", spec={"replicas": 3})], "spec.template"),
    ("1000 per cent", [obj("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "1000%"})], "minAvailable"),
    ("a name of a megabyte", [pod("x" * LONG, "1")], "must be no more than"),
    ("a label of a megabyte", [with_metadata(pod("q", "1"), labels={"x" * LONG: "y"})], "metadata.labels"),
    ("a kind of a megabyte", [obj("K" * LONG)], "KKK"),
    (
        "a pod of a server without a spec",
        [with_metadata(obj("Pod", name="p"), resourceVersion="1")],
        "spec.containers: Required value",
    ),
)
def test_objects_that_cannot_be_created_are_refused_in_few_words(
    service: Service, create: list[object], words: str
) -> None:
    answer = service.post("/v1/whatif", {"create": create})

    assert_is_refusal(answer, 422)
    assert words in answer.json()["message"] or len(json.dumps(create)) > LONG
    assert len(answer.content) < 10_000


@cases(
    "question, words",
    ("no name", {"drainNodes": [""]}, 'node "" not found'),
    ("a name of a megabyte", {"drainNodes": ["n" * LONG]}, 'node "nnn'),
    ("a slip of the pen", {"drainNodes": ["nod-0"]}, 'node "nod-0" not found; did you mean node-0?'),
    ("another slip of the pen", {"addNodes": [{"like": "Node-1", "count": 2}]}, "did you mean node-1?"),
    ("too many times", {"removeNodes": ["node-0"] * 100_000}, "more than 1000 nodes"),
    ("an empty configuration", {"configuration": {}}, "'Kind' is missing"),
    ("a number of profiles", {"configuration": CONFIGURATION | {"profiles": 5}}, "cannot unmarshal number"),
    (
        "too many profiles",
        {"configuration": CONFIGURATION | {"profiles": [{"schedulerName": f"s{place}"} for place in range(101)]}},
        "more than 100 profiles",
    ),
)
def test_impossible_question_is_refused_in_few_words(service: Service, question: object, words: str) -> None:
    answer = service.post("/v1/whatif", question)

    assert_is_refusal(answer, 422)
    assert words in answer.json()["message"]
    assert len(answer.content) < 10_000


# What makes some.


@cases(
    "question, summary",
    ("a huge request", {"create": [pod("q", "9P")]}, NO_ROOM),
    ("more than a number holds", {"create": [pod("q", "1e30")]}, "shop/q would "),
    ("a tiny request", {"create": [pod("q", "1n")]}, "shop/q would go to node-1."),
    ("a huge node", {"create": [node(cpu="9P", memory="7E", pods="100"), pod("q", "5")]}, "shop/q would go to new."),
    ("a node with nothing", {"create": [obj("Node"), pod("q", "1")]}, "shop/q would go to node-1."),
    ("a pod for each node", {"create": [workload("DaemonSet")]}, "All 3 pods would be scheduled."),
    ("empty lists", {"create": [{"kind": "List", "items": [{"kind": "PodList", "items": []}]}]}, "Nothing would"),
    ("what means nothing here", {"create": [obj("Secret"), obj("Lease")]}, "Nothing would change."),
    ("a pod that owns itself", {"create": [owned_by("q", "q")]}, "shop/q would go to node-1."),
    ("ten times", {"drainNodes": ["node-0"] * 5, "removeNodes": ["node-0"] * 5}, "bank/batch-0 would be evicted"),
    ("all nodes drained", {"drainNodes": NODES}, "3 pods would be evicted"),
    ("all nodes removed", {"removeNodes": NODES, "includePending": True}, "None of 3 pods would"),
    (
        "a scheduler of a megabyte",
        {"create": [pod("q", "1", schedulerName="x" * LONG)]},
        "shop/q would be unschedulable: 0/3 nodes are available: the pod's scheduling demands have",
    ),
)
def test_odd_questions_have_their_answers(service: Service, question: object, summary: str) -> None:
    answer = service.post("/v1/whatif", question)

    assert answer.status_code == 200, answer.text[:1000]
    assert answer.json()["isComplete"]
    assert answer.json()["summary"].startswith(summary)


def test_pods_that_own_each_other_and_have_to_move_come_to_rest(service: Service) -> None:
    create = [owned_by("a", "b"), owned_by("b", "a")]

    answer = service.post("/v1/whatif", {"create": create, "drainNodes": ["node-0", "node-1"]}).json()

    assert [(place["pod"]["name"], place["node"]) for place in answer["placements"][:2]] == [("a", "node-2"), ("b", "")]
    assert answer["isComplete"]


def test_copies_of_one_pod_are_several(service: Service) -> None:
    """With the UID of another pod of the question, or of one that runs: who copies a manifest copies that, too."""
    running = service.client.get("/v1/cluster/node-0").json()["pods"][0]["pod"]
    create = [with_metadata(pod(name, "100m"), uid=running["uid"]) for name in ("a", "b")]

    answer = service.post("/v1/whatif", {"create": create}).json()

    assert answer["summary"] == "Both pods would be scheduled."
    assert len({placement["pod"]["uid"] for placement in answer["placements"]} | {running["uid"]}) == 3
    assert answer["evictions"] == []


@pytest.mark.slow
def test_what_if_accepts_the_largest_number_of_pods(service: Service) -> None:
    answer = service.post("/v1/whatif", {"create": [workload("Deployment", replicas=5000)]}).json()

    assert len(answer["placements"]) == 5000
    assert answer["unplaced"] == sum(not placement["node"] for placement in answer["placements"]) > 4000


# How it is asked.


@pytest.mark.parametrize("path", ["/v1/queue", "/v1/explain/shop/urgent", "/v1/decisions", "/v1/preemptions"])
@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "PATCH"])
def test_answers_are_there_to_be_read(service: Service, path: str, method: str) -> None:
    answer = service.client.request(method, path)

    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT"])
def test_a_what_if_is_posted(service: Service, method: str) -> None:
    answer = service.client.request(method, "/v1/whatif")

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("path", ["/v1/whatif", "/v1/capacity", "/ui/what-if"])
@pytest.mark.parametrize("content_type", ["", "text/plain", "application/yaml", "application/x-www-form-urlencoded"])
def test_questions_are_json(service: Service, path: str, content_type: str) -> None:
    assert_is_refusal(service.client.post(path, content=b"{}", headers={"Content-Type": content_type}), 415)


@pytest.mark.parametrize(
    "limit", ["0", "-1", "1e3", "1.5", "", "abc", "1001", "%00", "9" * 5000, "0x10", "NaN", "%EF%BC%95"]
)
def test_a_limit_is_a_number_within_limits(service: Service, limit: str) -> None:
    assert_is_refusal(service.client.get(f"/v1/decisions?limit={limit}"), 400)
    assert_is_refusal(service.client.get(f"/v1/capacity?pod=shop/urgent&limit={limit}00000"), 400)


@cases(
    "path, code",
    ("a long name", "/v1/explain/shop/" + "x" * 300, 400),
    ("no character", "/v1/explain/shop/%00", 404),
    ("no UTF-8", "/v1/explain/%ff/%ed%a0%80", 404),
    ("a name with a slash", "/v1/explain/shop/a%2Fb", 404),
    ("no name", "/v1/explain/shop/", 404),
    ("no node", "/v1/cluster/%00", 404),
    ("two slashes", "/v1/decisions?pod=a/b/c", 400),
    ("an id that no number holds", "/v1/decisions?before=9007199254740993", 400),
    ("the same in the path", "/v1/decisions/9007199254740993", 400),
    ("no id in the path", "/v1/decisions/latest", 400),
)
def test_unknown_names_are_not_found(service: Service, path: str, code: int) -> None:
    assert_is_refusal(service.client.get(path), code)


@cases(
    "manifest, code",
    ("a bomb", BOMB, 422),
    ("a list of itself", "&r\nkind: List\nitems: [*r]\n", 422),
    ("deep", "[" * 5000, 422),
    ("a tag that runs something", "!!python/object/apply:os.system ['true']", 422),
    ("no character", "kind: Pod\x00", 422),
    ("not a number", "kind: Pod\napiVersion: v1\nmetadata: {name: x}\nspec: {priority: .nan}", 422),
    ("too long", "x" * limits.WHAT_IF_FORM, 413),
)
def test_manifests_on_the_page_are_refused_alike(service: Service, manifest: str, code: int) -> None:
    assert_is_refusal(service.post("/ui/what-if", {"manifest": manifest}), code)


# Many who ask, and some who do not wait.


@pytest.mark.parametrize(
    "path",
    [
        "/v1/queue",
        "/v1/pending",
        "/v1/cluster",
        "/v1/decisions",
        "/v1/explain/shop/urgent",
        "/v1/capacity?pod=shop/urgent",
    ],
)
def test_a_service_that_does_not_know_its_cluster_answers_nothing_from_memory(path: str) -> None:
    with serving(lambda _: FailingEngine(RuntimeError("no"), is_ready=False)) as not_ready:
        answer = not_ready.client.get(path)

    assert_is_refusal(answer, 503)
    assert answer.headers["retry-after"] == "1"


def test_running_question_does_not_delay_other_requests(dump: Path) -> None:
    """Only a few more wait for their turn meanwhile; verbs, explanations and lists are answered as ever."""

    async def story(client: httpx.AsyncClient, state: ServiceState) -> None:
        question = {"create": [pod("q", "1")]}
        async with state.worker.turn:
            waiting = [
                asyncio.ensure_future(client.post("/v1/whatif", json=question))
                for _ in range(limits.QUESTIONS_AT_ONE_TIME)
            ]
            await until(lambda: state.worker.taken.total() == limits.QUESTIONS_AT_ONE_TIME)
            for path, body in (("/v1/whatif", question), ("/v1/capacity", pod("q", "1"))):
                refused = await client.post(path, json=body)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            filtered = await client.post("/extender/filter", json={"Pod": pod("q", "1"), "NodeNames": ["node-0"]})
            assert filtered.json()["NodeNames"] == ["node-0"]
            for path in ("/v1/explain/shop/urgent", "/v1/queue", "/v1/cluster", "/"):
                assert (await client.get(path)).status_code == 200
            assert not any(task.done() for task in waiting)
        answers = await asyncio.gather(*waiting)
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1

    in_process(dump, story)


@pytest.mark.parametrize("number", [1, 2, 7])
def test_caller_waits_for_at_most_one_question_of_each_other_one(dump: Path, number: int) -> None:
    """A caller has asked all that one may ask at one time."""

    async def story(client: httpx.AsyncClient, state: ServiceState) -> None:
        answered: list[str] = []

        async def asks(address: str) -> None:
            transport = httpx.ASGITransport(cast("Any", client)._transport.app, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:
                assert (await asking.post("/v1/whatif", json={})).status_code == 200
            answered.append(address)

        async with state.worker.turn:
            waiting = [asyncio.ensure_future(asks("10.0.0.1")) for _ in range(limits.QUESTIONS_AT_ONE_TIME)]
            await until(lambda: state.worker.taken.total() == limits.QUESTIONS_AT_ONE_TIME)
            addresses = [f"10.0.1.{place}" for place in range(number)]
            waiting += [asyncio.ensure_future(asks(address)) for address in addresses]
            await until(lambda: state.worker.taken.total() == limits.QUESTIONS_AT_ONE_TIME + number)
        await asyncio.gather(*waiting)
        assert sorted(answered[: number + 1]) == ["10.0.0.1", *addresses]

    in_process(dump, story)


def test_callers_beyond_the_limit_are_refused(dump: Path) -> None:
    async def story(client: httpx.AsyncClient, state: ServiceState) -> None:
        async def asks(address: str) -> int:
            transport = httpx.ASGITransport(cast("Any", client)._transport.app, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:
                return (await asking.post("/v1/whatif", json={})).status_code

        async with state.worker.turn:
            number = limits.QUESTIONS_AT_ONE_TIME
            waiting = [asyncio.ensure_future(asks(f"10.0.1.{place}")) for place in range(number)]
            await until(lambda: state.worker.taken.total() == number)
            assert await asks("10.0.0.1") == 503
        assert set(await asyncio.gather(*waiting)) == {200}

    in_process(dump, story)


def test_cancelled_question_gives_its_place_to_others(dump: Path) -> None:
    async def story(client: httpx.AsyncClient, state: ServiceState) -> None:
        async with state.worker.turn:
            waiting = [
                asyncio.ensure_future(client.post("/v1/whatif", json={})) for _ in range(limits.QUESTIONS_AT_ONE_TIME)
            ]
            await until(lambda: state.worker.taken.total() == limits.QUESTIONS_AT_ONE_TIME)
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
        assert (await client.post("/v1/whatif", json={})).status_code == 200

    in_process(dump, story)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for is in the loop, and tells nobody
        await asyncio.sleep(0)


def in_process(state: Path, story: Callable[[httpx.AsyncClient, ServiceState], Any]) -> None:
    async def main() -> None:
        app = create_app(Settings(port=0, state=state, schedule=False))
        async with app.router.lifespan_context(app):
            await until(app.state.service.backend.is_ready)
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                await story(client, app.state.service)

    asyncio.run(main())


def test_a_caller_may_hang_up_while_his_question_is_tried(service: Service) -> None:
    body = json.dumps({"create": [pod(f"p{place}", f"{90_000 + place}m") for place in range(1000)]}).encode()
    head = f"POST /v1/whatif HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(head + body)

    answer = service.client.post("/v1/whatif", content=b"{}", headers=JSON)

    assert answer.status_code == 200


def test_waiting_question_is_answered_503_when_the_service_ends() -> None:
    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise asyncio.CancelledError(at_the_end)

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        messages.append(message)

    at_the_end, messages = "Task cancelled, timeout graceful shutdown exceeded", list[Message]()
    asyncio.run(
        RequestLimits(never, Settings(port=0))(
            {"type": "http", "method": "GET", "path": "/v1/queue", "headers": []}, receive, send
        )
    )

    assert at_the_end in inspect.getsource(uvicorn.server)
    assert messages[0]["status"] == 503
    assert (b"retry-after", b"1") in messages[0]["headers"]
