"""What extenders answer, recorded in a few bytes, and read again.

Nodes are told by their places in the question, and addresses by names. A digest of the question says whether an answer
is to what is asked.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, TypeVar, final

import msgspec

from extender.client.http_extender import ExtenderCalls, without_password
from extender.engine.framework import Candidate, ExtenderError
from extender.values.config.configuration import Extender
from extender.values.golang.int64 import wrap
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.verb_results import Filtered
from extender.values.protocol.wire_types import HostPriority, MetaVictims
from reprieve.lab.recordings.entries import ExtenderAnswer
from reprieve.lab.recordings.recorder import Recorder

T = TypeVar("T")

FILTER: Final = "filter"
PRIORITIZE: Final = "prioritize"
PREEMPT: Final = "preempt"

_SCHEME: Final = "http://"
_RECORDED: Final = "recorded-"


def recorded_name(config: Extender) -> str:
    """Returns the name that stands for the address of an extender."""
    address = config.url_prefix.rstrip("/")
    if address.startswith(_SCHEME + _RECORDED):
        return address.removeprefix(_SCHEME)
    return _RECORDED + blake2b(without_password(address).encode(), digest_size=4).hexdigest()


def recorded_address(config: Extender) -> str:
    return _SCHEME + recorded_name(config)


def question_about_nodes(nodes: Sequence[Node]) -> str:
    """Returns the digest of a question for verdicts or scores on nodes."""
    return _digest(node.name for node in nodes)


def question_about_candidates(candidates: Sequence[Candidate]) -> str:
    """Returns the digest of a question for victims."""
    return _digest(
        f"{candidate.node} {' '.join(victim.uid for victim in candidate.victims)}" for candidate in candidates
    )


def _digest(lines: Iterable[str]) -> str:
    return blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


@final
class RecordedCalls(ExtenderCalls):
    """Passes calls on, and records their answers."""

    def __init__(self, recorder: Recorder, config: Extender, calls: ExtenderCalls) -> None:
        self._recorder = recorder
        self._address = without_password(config.url_prefix).rstrip("/")
        self._name = recorded_name(config)
        self._calls = calls

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        blank = ExtenderAnswer(self._name, FILTER, question_about_nodes(nodes))
        return await self._recorded(
            pod, blank, self._calls.filter(pod, nodes), lambda answer: _filtered(blank, nodes, answer)
        )

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        blank = ExtenderAnswer(self._name, PRIORITIZE, question_about_nodes(nodes))
        return await self._recorded(
            pod, blank, self._calls.prioritize(pod, nodes), lambda answer: _scored(blank, nodes, answer)
        )

    async def preempt(self, pod: Pod, candidates: Sequence[Candidate]) -> Mapping[str, MetaVictims | None]:
        blank = ExtenderAnswer(self._name, PREEMPT, question_about_candidates(candidates))
        return await self._recorded(
            pod, blank, self._calls.preempt(pod, candidates), lambda answer: _with_victims(blank, answer)
        )

    async def bind(self, pod: Pod, node: str) -> None:
        try:
            await self._calls.bind(pod, node)
        except ExtenderError as exc:
            self._recorder.bound_by_extender(self._name, pod, self._without_address(exc))
            raise
        self._recorder.bound_by_extender(self._name, pod, None)

    async def aclose(self) -> None:
        await self._calls.aclose()

    async def _recorded(
        self, pod: Pod, blank: ExtenderAnswer, call: Awaitable[T], recorded: Callable[[T], ExtenderAnswer]
    ) -> T:
        self._recorder.asked(pod)
        try:
            answer = await call
        except ExtenderError as exc:
            self._recorder.answered(msgspec.structs.replace(blank, error=self._without_address(exc)))
            raise
        self._recorder.answered(recorded(answer))
        return answer

    def _without_address(self, exc: ExtenderError) -> str:
        return str(exc).replace(self._address, self._name)


def _filtered(blank: ExtenderAnswer, nodes: Sequence[Node], answer: Filtered) -> ExtenderAnswer:
    place = {node.name: index for index, node in enumerate(nodes)}
    names = answer.node_names if answer.node_names is not None else [node.name for node in answer.nodes or ()]
    passed = [place[name] for name in names if name in place]
    return msgspec.structs.replace(
        blank,
        passed=None if passed == list(range(len(nodes))) else passed,
        failed=_by_reason(answer.failed, place),
        unresolvable=_by_reason(answer.failed_and_unresolvable, place),
        unknown=[name for name in names if name not in place],
    )


def _scored(blank: ExtenderAnswer, nodes: Sequence[Node], answer: Iterable[HostPriority]) -> ExtenderAnswer:
    scores = dict.fromkeys((node.name for node in nodes), 0)
    for priority in answer:
        if priority.host in scores:
            scores[priority.host] += priority.score
    return msgspec.structs.replace(blank, scores=[wrap(score) for score in scores.values()])


def _with_victims(blank: ExtenderAnswer, answer: Mapping[str, MetaVictims | None]) -> ExtenderAnswer:
    victims = [
        (node, 0, None) if node_victims is None else (node, node_victims.num_pdb_violations, list(node_victims.uids))
        for node, node_victims in answer.items()
    ]
    return msgspec.structs.replace(blank, victims=victims)


def _by_reason(reasons: Mapping[str, str], place: Mapping[str, int]) -> list[tuple[str, list[int]]]:
    places_by_reason: dict[str, list[int]] = defaultdict(list)
    for name, reason in reasons.items():
        if name in place:
            places_by_reason[reason].append(place[name])
    return list(places_by_reason.items())


def without_texts(answer: ExtenderAnswer) -> ExtenderAnswer:
    def nodes_alone(reasons: list[tuple[str, list[int]]]) -> list[tuple[str, list[int]]]:
        return [("", sorted(place for _, places in reasons for place in places))] if reasons else []

    error = None if answer.error is None else ""
    return msgspec.structs.replace(
        answer, error=error, failed=nodes_alone(answer.failed), unresolvable=nodes_alone(answer.unresolvable)
    )
