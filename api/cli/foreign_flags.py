"""kube-scheduler's flags that mean nothing here: each is passed over with a word, or refused, because whoever gives it counts on something.

Those that mean the same here are options of `reprieve serve`. docs/flags.md has all of them.

Upstream: cmd/kube-scheduler/app/options; apiserver/pkg/server/options; component-base/logs/api/v1, metrics, featuregate (v1.36.2).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final


@final
class Effect(enum.Enum):
    """What becomes of a flag."""

    PASSED_OVER = enum.auto()
    """Nothing that it says would change what we do."""
    GUARDS = enum.auto()
    """It says who may call. Passed over while only this machine can call us, refused otherwise."""
    REFUSED = enum.auto()
    """Whoever gives it would get something else than expected."""


@final
@dataclass(frozen=True, slots=True)
class ForeignFlag:
    """A flag of kube-scheduler without a meaning here."""

    effect: Effect
    why: str
    is_switch: bool = False
    """It needs no value."""


def _all(effect: Effect, why: str, *names: str, is_switch: bool = False) -> dict[str, ForeignFlag]:
    return {name: ForeignFlag(effect, why, is_switch) for name in names}


_NOBODY_IS_ASKED: Final = "callers are not authenticated here, so that whoever reaches the port reads metrics and configuration"
_GONE: Final = "kube-scheduler has not had it for years"

FOREIGN: Final[Mapping[str, ForeignFlag]] = {
    **_all(
        Effect.GUARDS, _NOBODY_IS_ASKED,
        "authentication-kubeconfig", "authorization-kubeconfig", "client-ca-file", "requestheader-client-ca-file",
        "requestheader-allowed-names", "requestheader-extra-headers-prefix", "requestheader-group-headers", "requestheader-uid-headers",
        "requestheader-username-headers", "authorization-always-allow-paths",
    ),
    **_all(
        Effect.PASSED_OVER, "nobody is asked who a caller is",
        "authentication-token-webhook-cache-ttl", "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
    ),
    **_all(
        Effect.PASSED_OVER, "nobody is asked who a caller is",
        "authentication-skip-lookup", "authentication-tolerate-lookup-failure", is_switch=True,
    ),
    **_all(Effect.PASSED_OVER, "no certificate is made up here", "cert-dir"),
    **_all(Effect.PASSED_OVER, "HTTP/1.1 is spoken", "http2-max-streams-per-connection"),
    **_all(Effect.PASSED_OVER, "the port is taken alone", "permit-address-sharing", "permit-port-sharing", is_switch=True),
    **_all(Effect.REFUSED, "which ciphers are used is left to OpenSSL", "tls-cipher-suites", "tls-curve-preferences"),
    **_all(Effect.REFUSED, "there is one certificate: name it with --tls-cert-file", "tls-sni-cert-key"),
    **_all(Effect.PASSED_OVER, "there are no locks that one could wait for", "contention-profiling", is_switch=True),
    **_all(Effect.PASSED_OVER, "JSON is spoken", "kube-api-content-type"),
    **_all(Effect.PASSED_OVER, "no metric is hidden", "show-hidden-metrics-for-version"),
    **_all(Effect.PASSED_OVER, "labels of metrics are not filtered", "allow-metric-labels", "allow-metric-labels-manifest"),
    **_all(Effect.PASSED_OVER, "every line is written at once", "log-flush-frequency", "log-json-info-buffer-size"),
    **_all(Effect.PASSED_OVER, "every line is written at once", "log-text-info-buffer-size"),
    **_all(Effect.PASSED_OVER, "everything goes to stderr", "log-json-split-stream", "log-text-split-stream", is_switch=True),
    **_all(Effect.REFUSED, "kube-scheduler 1.36 is what decisions are like", "emulated-version", "min-compatibility-version"),
    **_all(Effect.REFUSED, "kube-scheduler 1.36 is what decisions are like", "emulation-forward-compatible", is_switch=True),
    **_all(
        Effect.REFUSED, _GONE,
        "policy-config-file", "policy-configmap", "policy-configmap-namespace", "algorithm-provider", "scheduler-name", "address",
        "hard-pod-affinity-symmetric-weight", "lock-object-name", "lock-object-namespace", "failure-domains",
    ),
    **_all(Effect.REFUSED, _GONE, "use-legacy-policy-config", "disable-preemption", is_switch=True),
}  # fmt: skip
