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
    """Returns the digest of the question which nodes pass, or how good they are."""
    return _digest(node.name for node in nodes)


def question_about_candidates(candidates: Sequence[Candidate]) -> str:
    """Returns the digest of the question which pods are to be evicted."""
    return _digest(f"{each.node} {' '.join(victim.uid for victim in each.victims)}" for each in candidates)


def _digest(lines: Iterable[str]) -> str:
    return blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


@final
class RecordedCalls(ExtenderCalls):
    """Passes calls on, and has their answers recorded."""

    def __init__(self, recorder: Recorder, config: Extender, calls: ExtenderCalls) -> None:
        self._recorder = recorder
        self._address = without_password(config.url_prefix).rstrip("/")
        self._name = recorded_name(config)
        self._calls = calls

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        asked = ExtenderAnswer(self._name, FILTER, question_about_nodes(nodes))
        return await self._recorded(
            pod, asked, self._calls.filter(pod, nodes), lambda answer: _filtered(asked, nodes, answer)
        )

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> list[HostPriority]:
        asked = ExtenderAnswer(self._name, PRIORITIZE, question_about_nodes(nodes))
        return await self._recorded(
            pod, asked, self._calls.prioritize(pod, nodes), lambda answer: _scored(asked, nodes, answer)
        )

    async def preempt(self, pod: Pod, candidates: Sequence[Candidate]) -> Mapping[str, MetaVictims | None]:
        asked = ExtenderAnswer(self._name, PREEMPT, question_about_candidates(candidates))
        return await self._recorded(
            pod, asked, self._calls.preempt(pod, candidates), lambda answer: _with_victims(asked, answer)
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
        self, pod: Pod, asked: ExtenderAnswer, call: Awaitable[T], recorded: Callable[[T], ExtenderAnswer]
    ) -> T:
        self._recorder.asked(pod)
        try:
            answer = await call
        except ExtenderError as exc:
            self._recorder.answered(msgspec.structs.replace(asked, error=self._without_address(exc)))
            raise
        self._recorder.answered(recorded(answer))
        return answer

    def _without_address(self, exc: ExtenderError) -> str:
        return str(exc).replace(self._address, self._name)


def _filtered(asked: ExtenderAnswer, nodes: Sequence[Node], answer: Filtered) -> ExtenderAnswer:
    place = {node.name: at for at, node in enumerate(nodes)}
    names = answer.node_names if answer.node_names is not None else [node.name for node in answer.nodes or ()]
    passed = [place[name] for name in names if name in place]
    return msgspec.structs.replace(
        asked,
        passed=None if passed == list(range(len(nodes))) else passed,
        failed=_by_reason(answer.failed, place),
        unresolvable=_by_reason(answer.failed_and_unresolvable, place),
        unknown=[name for name in names if name not in place],
    )


def _scored(asked: ExtenderAnswer, nodes: Sequence[Node], answer: Iterable[HostPriority]) -> ExtenderAnswer:
    scores = dict.fromkeys((node.name for node in nodes), 0)
    for each in answer:
        if each.host in scores:
            scores[each.host] += each.score
    return msgspec.structs.replace(asked, scores=[wrap(score) for score in scores.values()])


def _with_victims(asked: ExtenderAnswer, answer: Mapping[str, MetaVictims | None]) -> ExtenderAnswer:
    victims = [
        (node, 0, None) if each is None else (node, each.num_pdb_violations, list(each.uids))
        for node, each in answer.items()
    ]
    return msgspec.structs.replace(asked, victims=victims)


def _by_reason(reasons: Mapping[str, str], place: Mapping[str, int]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = defaultdict(list)
    for name, reason in reasons.items():
        if name in place:
            found[reason].append(place[name])
    return list(found.items())


def without_texts(answer: ExtenderAnswer) -> ExtenderAnswer:
    def nodes_alone(reasons: list[tuple[str, list[int]]]) -> list[tuple[str, list[int]]]:
        return [("", sorted(place for _, places in reasons for place in places))] if reasons else []

    error = None if answer.error is None else ""
    return msgspec.structs.replace(
        answer, error=error, failed=nodes_alone(answer.failed), unresolvable=nodes_alone(answer.unresolvable)
    )
