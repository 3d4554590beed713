"""The catalogue of questions: one row makes the route and its description, the command's request, and the call."""

import asyncio
import re
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass, field as dataclass_field
from inspect import cleandoc, isawaitable
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar, final, get_args
from urllib.parse import quote

import msgspec
from msgspec import Meta, field

from extender.answers import overviews, types
from extender.answers.pending import Pending

A = TypeVar("A")
Q = TypeVar("Q", bound="type[Question[Any]]")

QUESTIONS: Final[list["type[Question[Any]]"]] = []
"""All questions: those of this module, and those of rooms above that are about more than a cluster."""


@final
@dataclass(frozen=True, slots=True)
class Row:
    """A decorator that enters a question into the catalogue, with what there is to say of it besides its fields."""

    request: str
    """Method and path below /v1. Fields that the path does not name are parameters, under their names in requests."""
    method: str
    """The method that answers it, of `Questions` or of what stands in its place."""
    answer: str
    """What the answer tells."""
    about: str = ""
    """The field with the namespace, or namespace/name, whose pods its caller has to be allowed to list."""
    lacking: tuple[str, str] = ("", "")
    """(resource, words) of what does not exist where the answer is None."""
    body: str = ""
    """The field that is the body of the request."""
    examples: Mapping[str, Any] = dataclass_field(default_factory=dict)
    """Bodies by name; a service with the example cluster answers them as they are."""
    takes_worker: bool = False
    """Whether it is answered by a simulation, in a process of its own. All that have a body are."""
    chooses_names: bool = False
    """Whether its method takes `visibility`, to choose by names that the caller may see. Other answers are redacted."""
    may_be_wrong: bool = False
    """Whether a field may have a value that only its method finds wrong. All bodies may."""
    is_brief: bool = False
    """Whether its description leaves out what may be refused of any question."""

    def __call__(self, question: Q) -> Q:
        question.row = self
        QUESTIONS.append(question)
        return question


class Question(msgspec.Struct, Generic[A], frozen=True):
    """The base of questions. `A` is the type of the answer. A docstring begins with the question in words."""

    row: ClassVar[Row]

    @classmethod
    def words(cls) -> tuple[str, str]:
        summary, _, description = cleandoc(cls.__doc__ or "").partition("\n\n")
        return summary, description

    @classmethod
    def answer_type(cls) -> Any:
        return get_args(vars(cls)["__orig_bases__"][0])[0]

    @classmethod
    def body_type(cls) -> Any:
        """Returns the type of the body; None without one."""
        return next((part.type for part in msgspec.structs.fields(cls) if part.name == cls.row.body), None)

    @classmethod
    def schemas(cls) -> Iterator[Any]:
        """Yields the types of the answer and of the body, unless that is any object."""
        yield from (
            member
            for kind in (cls.answer_type(), cls.body_type())
            for member in get_args(kind) or (kind,)
            if isinstance(member, msgspec.StructMeta)
        )

    @property
    def namespace_asked(self) -> str:
        """The namespace whose pods the caller has to be allowed to list; empty for none."""
        return str(getattr(self, self.row.about)).partition("/")[0] if self.row.about else ""

    @property
    def takes_worker(self) -> bool:
        return self.row.takes_worker or bool(self.row.body)

    def ask(self, answering: object, **arguments: object) -> A | Awaitable[A]:
        """Calls the method that answers the question, with its fields by name."""
        answer: A | Awaitable[A] = getattr(answering, self.row.method)(**msgspec.structs.asdict(self), **arguments)
        return answer

    def address(self) -> tuple[str, str, Mapping[str, str]]:
        """Returns the method, the path and the parameters of the request for it."""
        names = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        values = {parameter: getattr(self, name) for name, parameter in names if name != self.row.body}
        texts = {name: str(value).lower() if value is True else str(value) for name, value in values.items() if value}
        method, _, path = self.row.request.partition(" ")
        parts = {name: quote(texts.pop(name, ""), safe="") for name in re.findall(r"{(\w+)}", path)}
        return method, f"/v1{path.format_map(parts)}", texts


def worked_out(question: Question[A], answering: object) -> A:
    """Returns the answer, in a process of its own or a thread, where no event loop runs."""
    answer = question.ask(answering)

    async def awaited(awaitable: Awaitable[A]) -> A:
        return await awaitable

    return asyncio.run(awaited(answer)) if isawaitable(answer) else answer


_POD_KEY: Final = Meta(pattern=r"^[^/\s]{1,63}/[^/\s]{1,253}$", description="namespace/name of a pod")

Name = Annotated[str, Meta(min_length=1, max_length=253)]
PodKey = Annotated[str | None, _POD_KEY]
Limit = Annotated[int, Meta(ge=1, le=1000, description="how many at most, newest first")]
MaxPods = Annotated[
    int | None,
    Meta(
        ge=1,
        le=100_000,
        description="stop counting at this number; by default 100000, or 1000 for pods that are placed one by one",
    ),
]
Moment = Annotated[str, Meta(max_length=32, description="a time such as 2026-01-31T12:00:00Z")]
Before = Annotated[int | None, Meta(ge=1, le=2**53, description="only those with a smaller id: the next page")]
Picture = Annotated[bool, Meta(description="with every node's verdicts, plugin by plugin")]

_CLASS: Final = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "sample"},
    "value": 100_000,
}
_CONTAINER: Final = {
    "name": "main",
    "image": "registry.example/app:1",
    "resources": {"requests": {"cpu": "4", "memory": "1Gi"}},
}
POD_EXAMPLE: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "urgent", "namespace": "default"},
    "spec": {"containers": [_CONTAINER]},
}
_URGENT: Final = {**POD_EXAMPLE, "spec": {"priorityClassName": "sample", "containers": [_CONTAINER]}}
_WHAT_IF_EXAMPLES: Final = {
    "a pod that needs room": {"create": [_CLASS, _URGENT]},
    "a node is drained": {"drainNodes": ["node-a1"]},
}


@final
@Row("GET /about", "about", "The version and the cluster.")
class AboutQuestion(Question[types.AboutService], frozen=True):
    """Who answers, and for which cluster?

    Says which version of Reprieve this is, and which cluster its answers are about.
    """


@final
@Row(
    "GET /explain/{namespace}/{pod}",
    "explain",
    "Why, what would help, and what happened to it.",
    about="namespace",
    lacking=("pods", "there is no such pod, and no recent decision about one"),
    chooses_names=True,
)
class ExplainQuestion(Question[types.Explanation | None], frozen=True):
    """Why is this pod pending?

    Says why each node refuses the pod now, what it waits for, what would help, and what happened to it so far,
    even if it is gone.
    """

    namespace: Name
    pod: Name
    picture: Picture = False
    events: Annotated[bool, Meta(description="with its Events, read from the API server")] = False


@final
@Row("POST /explain", "explain_of", "Why, and what would help.", body="obj", examples={"a pod": POD_EXAMPLE})
class ExplainOfQuestion(Question[types.Explanation], frozen=True):
    """Why would this pod be pending?

    The same as GET for a pod that does not exist, or for the first pod of a workload (Deployment, Job, ...).
    """

    obj: dict[str, Any]
    picture: Picture = False


@final
@Row("POST /whatif", "what_if", "What would happen to every pod concerned.", body="request", examples=_WHAT_IF_EXAMPLES)
class WhatIfQuestion(Question[types.WhatIf], frozen=True):
    """What would happen if?

    Tries pods to create, nodes to add, remove or drain, or another configuration on a copy of the cluster. Nothing
    is written.
    """

    request: types.WhatIfRequest


_NO_POD: Final = ("pods", "there is no such pod")


@final
@Row("GET /capacity", "capacity", "How many, and on which nodes.", about="pod", lacking=_NO_POD, takes_worker=True)
class CapacityQuestion(Question[types.Capacity | None], frozen=True):
    """How many more of this pod fit?

    Places pods like this one, one after the other, until one does not fit. No pod is evicted for them.
    """

    pod: Annotated[str, _POD_KEY]
    limit: MaxPods = None


@final
@Row("POST /capacity", "capacity_of", "How many, and on which nodes.", body="pod", examples={"a pod": POD_EXAMPLE})
class CapacityOfQuestion(Question[types.Capacity], frozen=True):
    """How many of such a pod would fit?

    The same as GET for a pod that does not exist, or for the pods of a workload (Deployment, Job, ...).
    """

    pod: dict[str, Any]
    limit: MaxPods = None


@final
@Row("GET /decisions", "decisions", "Newest first.")
class DecisionsQuestion(Question[overviews.Decisions], frozen=True):
    """What was decided recently?

    Lists attempts to schedule pods, and calls of kube-scheduler to the extender.
    """

    pod: PodKey = None
    limit: Limit = 100
    before: Before = None


_NOT_KEPT: Final = ("decisions", "there is no such decision (any more): the oldest are dropped first")


@final
@Row("GET /decisions/{id}", "decision", "The decision, with the details that are still stored.", lacking=_NOT_KEPT)
class DecisionQuestion(Question[types.Attempt | None], frozen=True):
    """What was decided then?

    Shows one attempt. With many pods at once, only the outcome of some attempts is kept.
    """

    number: Annotated[int, Meta(ge=1, le=2**53, description="the id in /v1/decisions and /v1/explain")] = field(
        name="id"
    )
    picture: Annotated[bool, Meta(description="with the plugin that refused each node")] = False


@final
@Row(
    "GET /history",
    "history",
    "Newest first, with their number in each part of the time.",
    chooses_names=True,
    may_be_wrong=True,
)
class HistoryQuestion(Question[overviews.Past], frozen=True):
    """What was decided in this time, for these pods?

    Lists attempts, grouped where they ended alike, and preemptions, as the page's history does.
    """

    outcome: Annotated[overviews.OutcomeWanted, Meta(description="how the attempts ended; empty for any")] = ""
    name: Annotated[str, Meta(max_length=317, description="a part of namespace/name")] = ""
    namespace: Annotated[str, Meta(max_length=63)] = ""
    node: Annotated[str, Meta(max_length=253, description="a part of the node's name")] = ""
    plugin: Annotated[str, Meta(max_length=253, description="a plugin that refused a node")] = ""
    range: Annotated[str, Meta(max_length=8, description="the last 15m, 1h, 6h, 24h, 7d, or all")] = ""
    since: Moment = ""
    until: Moment = ""
    before: Before = None


@final
@Row("GET /preemptions", "preemptions", "Newest first.")
class PreemptionsQuestion(Question[overviews.Preemptions], frozen=True):
    """Which pods were preempted, and for which?

    Lists preemptions with the nodes that were not chosen, and why. `pod` is a victim or a preemptor.
    """

    pod: PodKey = None
    limit: Limit = 100


@final
@Row("GET /queue", "queue", "All pods that wait.")
class QueueQuestion(Question[types.Queue], frozen=True):
    """Which pods wait, and for what?

    Lists the pods that wait, in the order in which they will be tried, if there is one.
    """


@final
@Row("GET /pending", "pending", "By reason and workload, most pods first.", chooses_names=True)
class PendingQuestion(Question[Pending], frozen=True):
    """Why do pods wait?

    Groups the pods that wait by reason and workload, and says which resources they lack.
    """


@final
@Row("GET /find", "find", "The best matches first.", chooses_names=True)
class FindQuestion(Question[overviews.FoundNames], frozen=True):
    """What has this name?

    Finds pods (deleted ones, too), nodes, workloads, namespaces and pod groups by parts of their names; if none
    matches, pods and nodes with similar names.
    """

    query: Annotated[
        str, Meta(max_length=253, description="words that the name contains, with its namespace before it")
    ] = field(default="", name="q")
    limit: Annotated[int, Meta(ge=1, le=100, description="how many at most")] = 20


@final
@Row(
    "GET /pods",
    "pods",
    "The pods; without a namespace, also the namespaces.",
    about="namespace",
    chooses_names=True,
    may_be_wrong=True,
)
class PodsQuestion(Question[overviews.PodList], frozen=True):
    """Which pods are there?

    Lists the pods of the cluster, a namespace, a workload or a pod group, pending ones first.
    """

    namespace: Annotated[str, Meta(max_length=63, description="only those of this namespace")] = ""
    workload: Annotated[
        str, Meta(max_length=320, description="only those of this Kind/name, such as Deployment/web")
    ] = ""
    group: Annotated[str, Meta(max_length=253, description="only those of this pod group")] = ""
    selector: Annotated[str, Meta(max_length=2048, description="only those with these labels, such as app=web")] = ""
    query: Annotated[str, Meta(max_length=253, description="words of pod, owner or node")] = field(default="", name="q")
    state: Annotated[Literal["", overviews.PodState], Meta(description="only those in this state")] = ""
    sort: Annotated[overviews.PodOrder, Meta(description="a column; `-` before it reverses the order")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="how many at most")] = 500


@final
@Row("GET /cluster", "cluster", "The nodes, by zone and name.", is_brief=True)
class ClusterQuestion(Question[overviews.ClusterMap], frozen=True):
    """What does the cluster look like?

    Lists nodes with their allocatable and requested resources and, in a small cluster, with their pods.
    """


@final
@Row(
    "GET /cluster/{node}", "node", "The node with its pods.", lacking=("nodes", "there is no such node"), is_brief=True
)
class NodeQuestion(Question[overviews.NodeOnMap | None], frozen=True):
    """What is on this node?

    Shows one node with its pods, in a cluster of any size.
    """

    node: Name
