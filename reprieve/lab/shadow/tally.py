"""Counts how often the decisions of a shadow and of the scheduler agree, and keeps the last differences."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, final, get_args

from prometheus_client.metrics_core import CounterMetricFamily, Metric

from extender.values.metrics.metrics import counter
from extender.values.objects.pod import Pod
from reprieve.lab import limits
from reprieve.lab.agreement import AgreementShare, Difference

Verdict = Literal["same", "tie", "unclear", "different"]

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
_ADDED_TOLERATIONS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""The API server adds them to every pod. Upstream: plugin/pkg/admission/defaulttolerationseconds."""

FURTHER: Final = "others"
PLACED: Final = "placed"
"""Stands for a reason where the scheduler placed the pod."""


_Count = Counter[Verdict]
"""How many decisions of one sort there were."""


def share_of(count: _Count, name: str) -> AgreementShare:
    agreed = count["same"] + count["tie"]
    clear = agreed + count["different"]
    return AgreementShare(
        name=name,
        decisions=count.total(),
        same=count["same"],
        ties=count["tie"],
        unclear=count["unclear"],
        different=count["different"],
        agreement=agreed / clear if clear else None,
    )


@final
@dataclass(slots=True)
class AgreementTally:
    """State: the counts and the last differences."""

    total: _Count = field(default_factory=Counter)
    not_decided: Counter[str] = field(default_factory=Counter)
    """The reason why pods were not decided -> the number of times."""
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind of difference, plugin that made it) -> how often, unclear ones included."""
    evicted: int = 0
    spared: int = 0
    differences: deque[Difference] = field(default_factory=lambda: deque(maxlen=limits.SHADOW_DIFFERENCES))
    by_plugin: dict[str, _Count] = field(default_factory=dict)
    by_shape: dict[str, _Count] = field(default_factory=dict)
    by_reason: dict[str, _Count] = field(default_factory=dict)

    def agreed(self, verdict: Literal["same", "tie"], shape: str, reason: str, plugins: Iterable[str]) -> None:
        """Counts a decision of these plugins; `reason` is why the scheduler could not place it, or empty."""
        self._count(verdict, shape, reason)
        for plugin in plugins:
            _of(self.by_plugin, plugin)[verdict] += 1

    def differed(self, difference: Difference, reason: str, plugins: Iterable[str]) -> None:
        """Counts and keeps a difference. The other plugins that took part count as agreeing."""
        verdict: Verdict = "different" if difference.is_clear else "unclear"
        self._count(verdict, difference.shape, reason)
        self._keep(difference)
        for plugin in {*plugins, *([difference.plugin] if difference.plugin else [])}:
            _of(self.by_plugin, plugin)[verdict if plugin == difference.plugin else "same"] += 1

    def victim(self, spared: Difference | None) -> None:
        """Counts a pod that the scheduler evicted; `spared` says why the shadow would not have."""
        self.evicted += 1
        if spared is not None:
            self.spared += spared.is_clear
            self._keep(spared)

    def shares(self, counts: Mapping[str, _Count]) -> tuple[AgreementShare, ...]:
        """Returns the shares of sorts, those with most differences first."""
        shares = (share_of(count, name) for name, count in counts.items())
        return tuple(sorted(shares, key=lambda share: (-share.different, -share.unclear, -share.decisions, share.name)))

    def metrics(self) -> Iterator[Metric]:
        yield counter(
            "reprieve_shadow_decisions",
            "Decisions of the cluster's scheduler that the shadow compared with its own: same, tie (one of several "
            "equal nodes), unclear (the same if events at about that time come in another order), different, "
            "not_decided.",
            ("result",),
            {verdict: self.total[verdict] for verdict in VERDICTS} | {"not_decided": self.not_decided.total()},
        )
        yield counter(
            "reprieve_shadow_differences",
            "Pods that the shadow would have treated differently, by what it would have done and the plugin that made "
            "the difference.",
            ("kind", "plugin"),
            self.kinds,
        )
        yield CounterMetricFamily(
            "reprieve_shadow_evictions",
            "Pods that the cluster's scheduler evicted for others.",
            value=self.evicted,
        )

    def _count(self, verdict: Verdict, shape: str, reason: str) -> None:
        for count in (self.total, _of(self.by_shape, shape), _of(self.by_reason, reason or PLACED)):
            count[verdict] += 1

    def _keep(self, difference: Difference) -> None:
        self.kinds[difference.kind, difference.plugin] += 1
        self.differences.append(difference)


def _of(counts: dict[str, _Count], name: str) -> _Count:
    if name not in counts and len(counts) >= limits.SHADOW_REASONS:
        name = FURTHER
    return counts.setdefault(name, Counter())


def shape_of(pod: Pod) -> str:
    """Returns what a pod asks for besides resources."""
    spec, affinity = pod.spec, pod.spec.affinity
    asks = {
        "nodes": bool(spec.node_selector) or (affinity is not None and affinity.node_affinity is not None),
        "spread": bool(spec.topology_spread_constraints),
        "affinity": affinity is not None and affinity.pod_affinity is not None,
        "anti-affinity": affinity is not None and affinity.pod_anti_affinity is not None,
        "tolerations": any(toleration.key not in _ADDED_TOLERATIONS for toleration in spec.tolerations),
        "ports": any(port.host_port for container in spec.containers for port in container.ports),
        "volumes": any(
            volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in spec.volumes
        ),
        "devices": bool(spec.resource_claims),
        "group": spec.scheduling_group is not None,
    }
    return " + ".join(name for name, is_asked in asks.items() if is_asked) or "plain"
