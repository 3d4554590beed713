"""Pods share the GPUs of a node, by memory and cores of each card; README.md says how nodes and pods tell of them."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from reprieve import plugin as fwk

CARDS = "gpu.example.com/cards"  # of a pod: on how many cards; of a node, an annotation: its cards
MEMORY = "gpu.example.com/memory"  # MiB of each card
CORES = "gpu.example.com/cores"  # percent of each card
CARD = "gpu.example.com/card"  # the annotation of a pod that has its cards, such as 0=10240/30,2=10240/30

MOST = 16  # cards of a node
NO_CARD, NO_SUCH_CARD = "node(s) had no card with enough room", "node(s) had no card of that size"


class Demand(NamedTuple):
    """What a pod asks of each of its cards. Neither memory nor cores means the whole card."""

    cards: int
    memory: int
    cores: int


def demand(pod):
    asked = fwk.requested_amounts(pod)
    memory, cores = asked.get(MEMORY, 0), asked.get(CORES, 0)
    return Demand(asked.get(CARDS, 1 if memory or cores else 0), memory, cores)


@lru_cache(4096)
def row_of(text, pods, waiting=0):
    """Returns the account of cards like 0=16384/100: memory, cores, and pods of each card; then pods without a card."""
    row = np.zeros((3, MOST), np.int64)
    try:
        for card, memory, cores in (each.replace("/", "=").split("=") for each in text.split(",") if each):
            row[:, int(card)] = int(memory), int(cores), pods
    except (ValueError, IndexError):  # somebody wrote something else there
        row[:] = 0
    return (*row.ravel().tolist(), waiting)


def of_node(node):
    cards = node.metadata.annotations.get(CARDS, "")
    return row_of(",".join(f"{card}={each}" for card, each in enumerate(cards.split(",")) if each), 0)


def of_pod(pod):
    placed = row_of(pod.annotations.get(CARD, ""), 1) if pod.spec.node_name else ()
    # One that has no card is nominated, or somebody else has bound it: it will need one.
    return placed if any(placed) else row_of("", 0, 1 if demand(pod).cards else 0)


LEFT, SIZES = fwk.Account(3 * MOST + 1, of_node, of_pod), fwk.Account(3 * MOST + 1, of_node, lambda pod: row_of("", 0))


def parts(left):
    """Returns the memory, cores and pods of each card, (..., MOST) each; the number of pods is negative."""
    return left[..., :MOST], left[..., MOST : 2 * MOST], left[..., 2 * MOST : 3 * MOST]


def fitting(left, want):
    """Returns (..., MOST) whether each card has room."""
    memory, cores, pods = parts(left)
    if want.memory or want.cores:
        return (memory >= want.memory) & (cores >= want.cores)
    return (memory > 0) & (pods == 0)


class SharedGpu(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.ScorePlugin, fwk.ReservePlugin, fwk.SignPlugin):
    """Of the cards with room, the fullest is best with the argument `place: pack`, or the emptiest with `spread`."""

    looks_only_at_node = scores_nothing_when_skipped = normalizes_by_extremes = True

    def __init__(self, arguments=None, handle=None):
        super().__init__(arguments, handle)
        self.packs = (arguments or {}).get("place", "pack") == "pack"

    def sign_pod(self, pod):
        return demand(pod)

    def pre_filter(self, state, pod, snapshot):
        return fwk.PreFilterResult(fwk.SUCCESS_EQUAL_PODS if demand(pod).cards else fwk.SKIP_EQUAL_PODS)

    def filter(self, state, pod, rows):
        want = demand(pod)
        too_few = fitting(rows.left(SIZES), want).sum(1) < want.cards
        no_room = fitting(self.settled(rows), want).sum(1) < want.cards
        return fwk.first_of([fwk.reject(too_few, NO_SUCH_CARD, unresolvable=True), fwk.reject(no_room, NO_CARD)])

    def score(self, state, pod, rows):
        want, left = demand(pod), self.settled(rows)
        sign = 1 if self.packs else -1  # the cards with the least memory left, or with the most
        memory = np.where(fitting(left, want), sign * parts(left)[0], 2**40)
        return np.abs(np.sort(memory, 1)[:, : want.cards].sum(1))

    def normalize_score(self, state, pod, scores):
        return fwk.default_normalize_score(scores, reverse=self.packs)

    def settled(self, rows):
        """Returns (R, W) what is left once the pods without a card have one as well."""
        left = rows.left(LEFT)
        waiting = np.flatnonzero(left[:, -1])
        if len(waiting):
            left = left.copy()
        for row in waiting.tolist():
            pods = rows.node_info(row).pods
            for pod in sorted((pod for pod in pods if of_pod(pod)[-1]), key=lambda pod: (-pod.priority, pod.uid)):
                want = demand(pod)
                cards = self.chosen(left[row], want)
                if not cards:  # it waits for pods that end, or that it evicts: what they leave is kept for it
                    leaving = [each for each in pods if each.is_terminating or each.priority < pod.priority]
                    gone = np.sum([np.zeros_like(left[row]), *map(of_pod, leaving)], 0)
                    cards = np.flatnonzero(fitting(left[row] + gone, want)).tolist()
                for card in cards:
                    for part, amount in zip(parts(left[row]), taken(left[row], card, want), strict=True):
                        part[card] -= amount
        return left

    def chosen(self, left, want):
        """Returns the cards for a pod, the best ones first; none if there are too few."""
        order = np.argsort(parts(left)[0] if self.packs else -parts(left)[0], kind="stable")
        cards = order[fitting(left, want)[order]][: want.cards].tolist()
        return cards if len(cards) == want.cards else []

    def reserve(self, state, pod, node):
        want, annotations = demand(pod), state.find(fwk.BINDING_ANNOTATIONS) or {}
        if not want.cards or CARD in annotations:
            return None
        row = fwk.Rows.of(state.snapshot, np.array([state.snapshot.nodes.index[node]]))
        for rows in (state.with_nominated_pods(row), row):
            left = self.settled(rows)[0]
            cards = self.chosen(left, want)
            if cards:
                text = ",".join("{}={}/{}".format(card, *taken(left, card, want)) for card in cards)
                state.write(fwk.BINDING_ANNOTATIONS, {**annotations, CARD: text})
                return None
        return fwk.unschedulable(NO_CARD)

    def unreserve(self, state, pod, node):
        """There is nothing to give back: the card was an annotation of the assumed pod."""


def taken(left, card, want):
    """Returns the memory, cores and pods that are taken of a card."""
    memory, cores, _ = parts(left)
    return (want.memory, want.cores, 1) if want.memory or want.cores else (int(memory[card]), int(cores[card]), 1)
