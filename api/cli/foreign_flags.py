"""kube-scheduler's flags that have no effect here. Each is ignored with a line in the log, or refused if an operator
would rely on it.

Flags that mean the same here are fields of `api.settings.settings.Settings`. docs/flags.md lists both.

Upstream: cmd/kube-scheduler/app/options; apiserver/pkg/server/options; component-base/logs/api/v1, metrics, featuregate
(v1.36.2).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final


@final
class Effect(enum.Enum):
    """What happens when a flag is given."""

    IGNORED = enum.auto()
    """It is ignored: no value of it would change what the service does."""
    REFUSED = enum.auto()
    """It is refused: the operator would get something else than expected."""


@final
@dataclass(frozen=True, slots=True)
class ForeignFlag:
    """A flag of kube-scheduler that has no effect here."""

    effect: Effect
    why: str
    is_switch: bool = False
    """It needs no value."""


def _all(effect: Effect, why: str, *names: str, is_switch: bool = False) -> dict[str, ForeignFlag]:
    return {name: ForeignFlag(effect, why, is_switch) for name in names}


_GONE: Final = "kube-scheduler has not had it for years"

FOREIGN: Final[Mapping[str, ForeignFlag]] = {
    **_all(
        Effect.IGNORED, "the API server of the cluster that is followed is asked about callers",
        "authentication-kubeconfig", "authorization-kubeconfig",
    ),
    **_all(
        Effect.IGNORED, "no front proxy is trusted: its callers are not known",
        "requestheader-client-ca-file", "requestheader-allowed-names", "requestheader-extra-headers-prefix",
        "requestheader-group-headers",
        "requestheader-uid-headers", "requestheader-username-headers",
    ),
    **_all(
        Effect.IGNORED, "answers about callers are kept for ten seconds",
        "authentication-token-webhook-cache-ttl", "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
    ),
    **_all(
        Effect.IGNORED, "who signs client certificates is not looked up: --client-ca-file says so",
        "authentication-skip-lookup", "authentication-tolerate-lookup-failure", is_switch=True,
    ),
    **_all(Effect.IGNORED, "no certificate is generated here", "cert-dir"),
    **_all(Effect.IGNORED, "the service speaks HTTP/1.1", "http2-max-streams-per-connection"),
    **_all(Effect.IGNORED, "the port is not shared", "permit-address-sharing", "permit-port-sharing", is_switch=True),
    **_all(Effect.REFUSED, "the choice of ciphers is left to OpenSSL", "tls-cipher-suites", "tls-curve-preferences"),
    **_all(Effect.REFUSED, "there is one certificate: name it with --tls-cert-file", "tls-sni-cert-key"),
    **_all(Effect.IGNORED, "there are no locks to wait for", "contention-profiling", is_switch=True),
    **_all(Effect.IGNORED, "the client speaks JSON", "kube-api-content-type"),
    **_all(Effect.IGNORED, "no metric is hidden", "show-hidden-metrics-for-version"),
    **_all(Effect.IGNORED, "labels of metrics are not filtered", "allow-metric-labels", "allow-metric-labels-manifest"),
    **_all(Effect.IGNORED, "every line is written at once", "log-flush-frequency", "log-json-info-buffer-size"),
    **_all(Effect.IGNORED, "every line is written at once", "log-text-info-buffer-size"),
    **_all(
        Effect.IGNORED, "everything goes to stderr", "log-json-split-stream", "log-text-split-stream", is_switch=True
    ),
    **_all(Effect.IGNORED, "no feature gate depends on the version of other parts of "
        "Kubernetes", "min-compatibility-version"),
    **_all(Effect.IGNORED, "no API of the scheduler depends on the "
        "version", "emulation-forward-compatible", is_switch=True),
    **_all(
        Effect.REFUSED, _GONE,
        "policy-config-file", "policy-configmap", "policy-configmap-namespace", "algorithm-provider", "scheduler-name",
        "address",
        "hard-pod-affinity-symmetric-weight", "lock-object-name", "lock-object-namespace", "failure-domains",
    ),
    **_all(Effect.REFUSED, _GONE, "use-legacy-policy-config", "disable-preemption", is_switch=True),
}  # fmt: skip
