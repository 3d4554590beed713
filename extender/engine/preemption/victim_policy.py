"""Victim policies: they protect pods from preemption, give evictions a cost, and let preemptors wait.

They are arguments of DefaultPreemption, and change its rules; `policy_rules` makes them. Upstream has none of them. The
annotations of PriorityClasses are those of scheduler-plugins: pkg/preemptiontoleration, ExemptedFromPreemption.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Final, final

import numpy as np

from extender.engine.framework import Candidates, PreemptionRules, ScoreFunction
from extender.engine.preemption.costs import fewest_pdb_violations, lowest_first_priority
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Floats, Index, Int64s, Mask
from extender.values import cel, limits
from extender.values.cel import CelError
from extender.values.config.plugin_args import EvictionCost, PreemptionDelay, Protection
from extender.values.golang.int64 import parse_int64
from extender.values.golang.times import moment_of
from extender.values.klog.logger import Logger
from extender.values.objects.gpu_requests import GPU, gpus_of, requests_of
from extender.values.objects.label_selectors import selector_of
from extender.values.objects.pod import STARTED_NOW, Pod, start_time
from extender.values.objects.quantity import QuantityError

_LOG: Final = Logger(__name__)

LAST_CHECKPOINT: Final = ("volcano.sh/last-checkpoint-time", "reprieve.dev/last-checkpoint-time")
"""Annotations of a pod with the time of its last checkpoint, in RFC 3339. The later one counts."""

TOLERATION: Final = ("preemption-toleration.scheduling.x-k8s.io/", "preemption-toleration.scheduling.sigs.k8s.io/")
"""Prefixes of the annotations of scheduler-plugins: the documented one, and the one in its code."""

_SECONDS_PER_HOUR: Final = 3600.0
_SCALE: Final = 1_000_000
"""Losses are compared in millionths."""
Now = Callable[[], datetime]


def policy_rules(
    rules: PreemptionRules,
    protect: Protection | None = None,
    cost: EvictionCost | None = None,
    delay: PreemptionDelay | None = None,
    *,
    now: Now,
    is_going: Callable[[], tuple[str, ...]] = tuple,
) -> PreemptionRules:
    """Returns the rules with the policies; `is_going` returns the UIDs of pods that are about to be evicted."""
    if protect is not None or cost is not None:
        rules = replace(rules, without_policies=rules)
    if protect is not None:
        rules = replace(
            rules,
            protects=_protects(protect, now),
            budgets_are_hard=protect.never_violate_budgets,
            is_going=is_going,
            too_costly=_too_costly(protect, Losses(EvictionCost(), now)),
        )
    if cost is not None:
        losses = Losses(cost, now)
        # Victims are reprieved one by one, so that the order of losses alone could lose more than the plain order does.
        rules = replace(rules, by_importance=_by_loss(losses), criteria=_with_loss(rules, losses), also_by=(rules,))
    if delay is not None:
        rules = replace(rules, delay_of=Delays(delay, now).left)
    return rules


@final
class Losses:
    """The losses of evicting pods. State: for each pod the parts that do not depend on the time."""

    def __init__(self, cost: EvictionCost, now: Now) -> None:
        self._per_hour, self._fixed = cel.PodNumber(cost.per_hour), cel.PodNumber(cost.fixed)
        self._now = now
        self._known: dict[str, tuple[Pod, float, float, float]] = {}

    def of(self, snapshot: Snapshot, slots: Index) -> Floats:
        """Returns (C,) the loss of evicting each of these pods now, never negative.

        A pod for which an expression fails loses its GPUs for each hour, so that its author gains nothing by it.
        """
        if len(self._known) > limits.LOSSES_KEPT + 2 * len(snapshot.pods.slots):
            self._known.clear()
        now = self._now().timestamp()
        losses = np.zeros(len(slots))
        for place, slot in enumerate(slots.tolist()):
            _, fixed, per_hour, since = self._of_pod(snapshot.pod_at(slot), int(snapshot.pods.start_time[slot]))
            losses[place] = fixed + per_hour * max(now - since, 0.0) / _SECONDS_PER_HOUR
        return np.maximum(losses, 0.0)

    def _of_pod(self, pod: Pod, started: int) -> tuple[Pod, float, float, float]:
        cached = self._known.get(pod.uid)
        if cached is None or cached[0] is not pod:
            try:
                fixed, per_hour = self._fixed.of(pod), self._per_hour.of(pod)
            except (CelError, QuantityError) as exc:
                _LOG.info(1, "The cost of evicting a pod cannot be computed, so its GPUs count", pod=pod, err=exc)
                fixed, per_hour = 0.0, _gpus(pod)
            cached = self._known[pod.uid] = pod, fixed, per_hour, _last_saved(pod, started)
        return cached


def _gpus(pod: Pod) -> float:
    try:
        return gpus_of(requests_of(pod))
    except QuantityError:
        return 0.0


def lost_gpu_hours(pod: Pod, now: float) -> float:
    """Returns the GPU hours that evicting the pod loses since its last checkpoint, or else since its start."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    if not any(name.endswith(GPU) for container in containers for name in container.resources.requests):
        return 0.0
    return round(_gpus(pod) * max(now - _last_saved(pod, start_time(pod)), 0.0) / _SECONDS_PER_HOUR, 3)


def _last_saved(pod: Pod, started: int) -> float:
    """Returns the time of the pod's last checkpoint, or else of its start, in seconds since 1970."""
    saved = [
        moment.timestamp() for name in LAST_CHECKPOINT if (moment := moment_of(pod.annotations.get(name))) is not None
    ]
    return max(float(started), *saved) if saved else float(started)


def _by_loss(losses: Losses) -> Callable[[Snapshot, Index, Index], Index]:
    def by_loss(snapshot: Snapshot, slots: Index, group: Index) -> Index:
        pods = snapshot.pods
        return np.lexsort(
            (pods.uid_ranks(slots), pods.start_time[slots], -losses.of(snapshot, slots), -pods.priority[slots], group)
        )

    return by_loss


def _with_loss(rules: PreemptionRules, losses: Losses) -> tuple[ScoreFunction, ...]:
    def least_loss(candidates: Candidates) -> Int64s:
        of_victims = losses.of(candidates.snapshot, candidates.slots)
        sums: Int64s = (np.add.reduceat(of_victims, candidates.first[:-1]) * _SCALE).astype(np.int64)
        return -sums

    first = (fewest_pdb_violations, lowest_first_priority)
    return (*first, least_loss, *(criterion for criterion in rules.criteria if criterion not in first))


def _protects(protect: Protection, now: Now) -> Callable[[Snapshot, Pod, Index], Mask]:
    selector = selector_of(protect.selector) if protect.selector is not None else None
    min_run_time = protect.min_run_time.seconds

    def protects(snapshot: Snapshot, preemptor: Pod, slots: Index) -> Mask:
        moment = int(now().timestamp())
        started = snapshot.pods.start_time[slots]
        ran = np.where(started == STARTED_NOW, 0, moment - started)
        stays: Mask = ran < min_run_time
        if selector is not None or protect.preemption_toleration:
            for place, slot in enumerate(slots.tolist()):
                pod = snapshot.pod_at(slot)
                stays[place] |= (selector is not None and selector.matches(pod.labels)) or (
                    protect.preemption_toleration and _tolerates(pod, preemptor, int(ran[place]), snapshot)
                )
        return stays

    return protects


def _tolerates(pod: Pod, preemptor: Pod, ran: int, snapshot: Snapshot) -> bool:
    """Returns whether the pod's PriorityClass protects it from this preemptor; an annotation that is no number does
    not.

    `ran` is seconds since the pod started; upstream counts from when it was scheduled.
    """
    priority_class = snapshot.objects.priority_classes.get(pod.spec.priority_class_name)
    if priority_class is None:
        return False
    annotations = priority_class.metadata.annotations
    threshold, seconds = priority_class.value + 1, 0
    for prefix, name in product(TOLERATION, ("minimum-preemptable-priority", "toleration-seconds")):
        text = annotations.get(prefix + name)
        if text is None:
            continue
        number = parse_int64(text)
        if number is None:
            return False
        if name == "toleration-seconds":
            seconds = number
        else:
            threshold = number
    return preemptor.priority < threshold and (seconds < 0 or ran < seconds)


def _too_costly(protect: Protection, gpu_hours: Losses) -> Callable[[Candidates], Iterator[tuple[str, Mask]]] | None:
    limit = protect.max_lost_gpu_time
    if not protect.max_victims and not limit.nanoseconds:
        return None

    def too_costly(candidates: Candidates) -> Iterator[tuple[str, Mask]]:
        if protect.max_victims:
            too_many = np.diff(candidates.first) > protect.max_victims
            yield f"more than {protect.max_victims} pods would be evicted", too_many
        if limit.nanoseconds:
            lost = np.add.reduceat(gpu_hours.of(candidates.snapshot, candidates.slots), candidates.first[:-1])
            yield f"more than {limit} of GPU time would be lost", lost * _SECONDS_PER_HOUR > limit.seconds

    return too_costly


@final
class Delays:
    """Delays preemptors. State: the time at which this process first refused each of them."""

    MOST: Final = 100_000
    """The most preemptors that are remembered; the oldest is forgotten first, and waits again."""

    def __init__(self, delay: PreemptionDelay, now: Now) -> None:
        self._delay = delay
        self._now = now
        self._since: dict[str, float] = {}

    def left(self, pod: Pod) -> float:
        """Returns the seconds that the pod still has to wait before it may preempt, from the first call on."""
        delay = self._delay.by_priority_class.get(pod.spec.priority_class_name, self._delay.default).seconds
        if delay <= 0:
            return 0.0
        now = self._now().timestamp()
        since = self._since.get(pod.uid)
        if since is None:
            if len(self._since) >= self.MOST:
                del self._since[next(iter(self._since))]
            since = self._since[pod.uid] = now
        return max(since + delay - now, 0.0)
