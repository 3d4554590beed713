"""The settings of the service. Each is declared once, as a field of `Settings`.

The environment variables, the flags of `reprieve serve` (`api.cli.serve`) and docs/flags.md
(`tools.generate_flags_page`) derive from the fields.
"""

import os
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, final

from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from api.settings.declarations import MIB, Group, Option, declared
from extender.values import limits
from extender.values.config.feature_gates import FeatureGates, parse_feature_gates, parse_version
from extender.values.golang.times import Duration
from reprieve.errors import StartUpError

EXAMPLE_CLUSTER: Final = Path(__file__).parents[1] / "examples" / "cluster.yaml"

Port = Annotated[int, Meta(ge=0, le=65535)]
Seconds = Annotated[float, Meta(gt=0, le=3600)]
Bytes = Annotated[int, Meta(ge=1024, le=2**40)]


_UPSTREAM: Final = Option(Group.KUBE_SCHEDULER)
_ENVIRONMENT: Final = Option(Group.ENVIRONMENT)


def _election(field: str, unset: str) -> Option:
    return Option(Group.KUBE_SCHEDULER, unset, configures=("leader_election", field))


def _deprecated(*path: str, unset: str) -> Option:
    return Option(Group.KUBE_SCHEDULER, unset, configures=path, yields_to_file=True)


@final
class Settings(Struct, frozen=True, kw_only=True):
    """Everything that can be set without a KubeSchedulerConfiguration. A field's docstring is its help text."""

    host: Annotated[str, Option(also=("--bind-address",))] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[Port, Option()] = 8888
    """Port to listen on; 0 takes a free one."""
    prefix: Annotated[str, Option()] = "/extender"
    """Path before the verbs, as in kube-scheduler's urlPrefix."""
    kubeconfig: Annotated[Path | None, Option(unset="the cluster that the process runs in, else the embedded one")] = (
        None
    )
    """Kubeconfig of the cluster to follow."""
    context: Annotated[str | None, Option(unset="the current one")] = None
    """Context of the kubeconfig."""
    schedule: Annotated[bool | None, Option(unset="only those of the embedded cluster")] = None
    """Schedule the pods of the cluster."""
    state: Annotated[Path | None, Option(unset="an example")] = None
    """Initial content of the embedded cluster: a List as kubectl prints it, also .gz."""
    save: Annotated[Path | None, Option(unset="not saved")] = None
    """File of the embedded cluster: read at the start, written each minute and at the end."""
    save_each_change: Annotated[bool, Option()] = False
    """Write each change of the embedded cluster to the file of --save before it is answered."""
    kubelet: Annotated[bool, Option()] = True
    """In the embedded cluster, run bound pods and end deleted ones."""
    kubernetes_port: Annotated[Port, Option()] = 8080
    """Port for kubectl to reach the embedded cluster; 0 takes a free one."""
    records: Annotated[Path | None, Option(unset="in memory")] = None
    """File that keeps decisions and preemptions across restarts."""
    record: Annotated[Path | None, Option(unset="not recorded")] = None
    """File for a recording of changes and decisions, which `replay`, `simulate` and `whatif` read; it is rotated."""
    record_max: Annotated[Bytes, Option()] = 256 * MIB
    """Bytes of a recording and the three older files of it, FILE.1 to FILE.3."""
    record_without: Annotated[Literal["nothing", "annotations", "names"], Option()] = "annotations"
    """What a recording leaves out: annotations of applications, or those and names of pods, namespaces and owners; or
    nothing.
    """
    shadow: Annotated[bool, Option()] = False
    """Decide every pod beside the scheduler of the cluster, without writing, and compare: /v1/agreement, `shadow
    report`.
    """
    shadow_config: Annotated[Path | None, Option(unset="the one of --config")] = None
    """KubeSchedulerConfiguration of the shadow, to compare two configurations; it implies --shadow."""
    access: Annotated[
        Literal["open", "reviewed"] | None, Option(unset="reviewed; on loopback open, except for names of pods")
    ] = None
    """Who may call: everyone (open), or callers whom the API server authorizes (reviewed); see docs/access.md."""
    client_allowed_names: Annotated[str, Option()] = ""
    """Common names, separated by commas, of client certificates that may call the verbs."""
    serve_bind: Annotated[bool, Option()] = False
    """Serve the verb bind, for pods of a profile's schedulerName on nodes that its Filters accept."""
    allowed_hosts: Annotated[str, Option()] = ""
    """Host names, separated by commas, under which callers reach the service; addresses and localhost always work."""

    config: Annotated[Path | None, Option(Group.KUBE_SCHEDULER, unset="kube-scheduler's defaults")] = None
    """KubeSchedulerConfiguration file, v1; a change is checked and logged, and takes effect at the next start."""
    secure_port: Annotated[Port | None, Option(Group.KUBE_SCHEDULER, unset="HTTP on --port")] = None
    """Port for HTTPS, instead of --port, with a self-signed certificate if none is given; 0 for none."""
    cert_dir: Annotated[Path | None, Option(Group.KUBE_SCHEDULER, unset="while the process runs")] = None
    """Folder that keeps the self-signed certificate for the next start, as kube-scheduler.crt and .key."""
    tls_cert_file: Annotated[Path | None, Option(Group.KUBE_SCHEDULER, unset="HTTP")] = None
    """Serve HTTPS on all ports with this certificate (PEM, with its chain); a change is noticed within ten seconds."""
    tls_private_key_file: Annotated[Path | None, Option(Group.KUBE_SCHEDULER, unset="HTTP")] = None
    """Private key of the certificate (PEM)."""
    tls_min_version: Annotated[Literal["VersionTLS12", "VersionTLS13"], _UPSTREAM] = "VersionTLS12"
    """The oldest version of TLS that is accepted: VersionTLS12 or VersionTLS13."""
    tls_cipher_suites: Annotated[str, Option(Group.KUBE_SCHEDULER, unset="OpenSSL's")] = ""
    """Accepted cipher suites of TLS 1.2, by Go's names and separated by commas; those of 1.3 are always accepted."""
    client_ca_file: Annotated[Path | None, Option(Group.KUBE_SCHEDULER, unset="no client certificates")] = None
    """CA certificates (PEM) for client certificates; the common name is the user, organizations are groups."""
    authorization_always_allow_paths: Annotated[str, _UPSTREAM] = "/healthz,/readyz,/livez"
    """Paths, separated by commas, that everyone may call; a * at the end matches any suffix."""
    master: Annotated[str | None, Option(Group.KUBE_SCHEDULER, unset="the kubeconfig's server")] = None
    """URL of the API server, with or without a kubeconfig."""
    leader_elect: Annotated[bool | None, _election("leader_elect", "as the configuration says: true")] = None
    """Let only one of several replicas schedule at a time."""
    leader_elect_lease_duration: Annotated[Duration | None, _election("lease_duration", "15s")] = None
    """How long other replicas wait for a leader that does not renew its lease."""
    leader_elect_renew_deadline: Annotated[Duration | None, _election("renew_deadline", "10s")] = None
    """How long a leader tries to renew before it gives up."""
    leader_elect_retry_period: Annotated[Duration | None, _election("retry_period", "2s")] = None
    """Pause between two tries."""
    leader_elect_resource_lock: Annotated[str | None, _election("resource_lock", "leases")] = None
    """Kind of the lock; only leases are supported."""
    leader_elect_resource_name: Annotated[str | None, _election("resource_name", "kube-scheduler")] = None
    """Name of the lease."""
    leader_elect_resource_namespace: Annotated[str | None, _election("resource_namespace", "kube-system")] = None
    """Namespace of the lease."""
    kube_api_qps: Annotated[float | None, _deprecated("client_connection", "qps", unset="50")] = None
    """Requests a second to the API server."""
    kube_api_burst: Annotated[int | None, _deprecated("client_connection", "burst", unset="100")] = None
    """Requests to the API server at once."""
    profiling: Annotated[bool | None, _deprecated("enable_profiling", unset="true")] = None
    """Serve PUT /debug/flags/v, which changes how much is logged; there is no pprof."""
    pod_max_in_unschedulable_pods_duration: Annotated[Duration, _UPSTREAM] = Duration.of(300)
    """Try an unschedulable pod again after this time, even if nothing has changed."""
    emulated_version: Annotated[str, Option(Group.KUBE_SCHEDULER, also=("--emulate-version",))] = "1.36"
    """The version of kube-scheduler whose defaults of feature gates apply, 1.33 to 1.38."""
    feature_gates: Annotated[str, _UPSTREAM] = ""
    """Feature gates, A=true,B=false; see docs/feature-gates.md."""
    v: Annotated[int, Meta(ge=0, le=100), Option(Group.KUBE_SCHEDULER, also=("-v",))] = 0
    """Verbosity of the log."""
    vmodule: Annotated[str, _UPSTREAM] = ""
    """Verbosity of single source files of Reprieve: scheduler=5,queue*=3."""
    logging_format: Annotated[Literal["text", "json"], _UPSTREAM] = "text"
    """Form of the log's lines: text or json."""
    disabled_metrics: Annotated[str, _UPSTREAM] = ""
    """Names of metrics that are not shown, separated by commas."""

    full_nodes: Annotated[bool, _ENVIRONMENT] = True
    """Accept bodies with thousands of nodes in full (nodeCacheCapable: false)."""
    max_full_nodes_body: Annotated[Bytes, _ENVIRONMENT] = 256 * MIB
    """Bytes of a request's body while full nodes are accepted."""
    max_body: Annotated[Bytes, _ENVIRONMENT] = 8 * MIB
    """Bytes of a request's body while full nodes are not accepted."""
    max_bodies: Annotated[Bytes, _ENVIRONMENT] = 256 * MIB
    """Bytes of all bodies that are held at one time, half of them for the verbs alone; less where memory is limited,
    unless set.
    """
    question_memory: Annotated[Bytes, _ENVIRONMENT] = int(limits.QUESTION_MEMORY)
    """Bytes that a question (what-if, plan, capacity, evaluation) may take while it is answered; less where memory is
    limited, unless set.
    """
    question_seconds: Annotated[Seconds, _ENVIRONMENT] = float(limits.QUESTION_SECONDS)
    """Seconds for the answer to such a question, one after the other."""
    record_memory: Annotated[Bytes, _ENVIRONMENT] = 64 * MIB
    """Bytes of recent decisions, and a quarter of that for calls: details are dropped first, then the oldest."""
    max_head: Annotated[Bytes, _ENVIRONMENT] = 64 * 1024
    """Bytes of a request's line and headers."""
    max_headers: Annotated[int, Meta(ge=10, le=10_000), _ENVIRONMENT] = 100
    """Headers of a request."""
    max_in_flight: Annotated[int, Meta(ge=1, le=100_000), _ENVIRONMENT] = 66
    """Verbs answered at one time, and as many other requests; one counts once its body has come, a health probe never.
    """
    head_seconds: Annotated[Seconds, _ENVIRONMENT] = 10
    """Seconds for a request's line and headers to arrive."""
    body_seconds: Annotated[Seconds, _ENVIRONMENT] = 10
    """Seconds for a body to arrive."""
    # Go keeps idle connections for 90 s; a server that closes earlier makes it send into a closed connection now and
    # then.
    keep_alive_seconds: Annotated[int, Meta(ge=1, le=3600), _ENVIRONMENT] = 150
    """Seconds for which an idle connection is kept; longer than the 90 for which Go's clients keep one."""

    def __post_init__(self) -> None:
        """Raises ValueError for a setting that is not what its help says."""
        path = self.prefix.strip("/")
        if not path.isascii() or any(c in path for c in " %?#{}\\") or "//" in path or not path.isprintable():
            raise ValueError("must be a plain path such as /extender")
        force_setattr(self, "prefix", f"/{path}" if path else "")
        force_setattr(self, "emulated_version", parse_version(self.emulated_version))
        FeatureGates.of(parse_feature_gates(self.feature_gates), self.emulated_version)
        _patterns(self.vmodule)

    @property
    def verbosity_by_file(self) -> list[tuple[str, int]]:
        """Pairs of a pattern for names of files and their verbosity."""
        return _patterns(self.vmodule)

    @property
    def features(self) -> FeatureGates:
        """The features that are on, by `feature_gates` and `emulated_version`."""
        return FeatureGates.of(parse_feature_gates(self.feature_gates), self.emulated_version)

    @property
    def allowed_common_names(self) -> list[str]:
        return listed(self.client_allowed_names)

    @property
    def always_allowed_paths(self) -> list[str]:
        """The paths of `authorization_always_allow_paths`."""
        return [f"/{path.lstrip('/')}" for path in listed(self.authorization_always_allow_paths)]

    @property
    def has_shadow(self) -> bool:
        """Whether every pod is decided beside the scheduler of the cluster."""
        return self.shadow or self.shadow_config is not None

    @property
    def listening_port(self) -> int:
        """The port for calls, HTTP or HTTPS."""
        return self.secure_port or self.port

    @property
    def body_limit(self) -> int:
        """Bytes of the largest body that is read."""
        return max(self.max_body, self.max_full_nodes_body) if self.full_nodes else self.max_body


DECLARATIONS: Final = declared(Settings, Path(__file__).read_text(encoding="utf-8"))
"""All settings by name, in the order in which the documentation has them."""


def listed(text: str) -> list[str]:
    """Returns the parts of a setting that are separated by commas."""
    return [part for item in text.split(",") if (part := item.strip())]


def _patterns(text: str) -> list[tuple[str, int]]:
    levels: list[tuple[str, int]] = []
    for pair in filter(None, text.split(",")):
        pattern, _, level = pair.partition("=")
        if not pattern or not (level.isascii() and level.isdigit()):
            raise ValueError("syntax error: expect comma-separated list of filename=N")
        levels.append((pattern.removesuffix(".py"), int(level)))
    return levels


def read_settings(environment: Mapping[str, str] = os.environ, **flags: object) -> Settings:
    """Returns the environment's settings, with the flags that are not None over them. Raises StartUpError."""
    variables = {
        name: text for name, declaration in DECLARATIONS.items() if (text := environment.get(declaration.variable))
    }
    given_flags = {name: value for name, value in flags.items() if value is not None}
    settings, given = Settings(), {**variables, **given_flags}
    for name in DECLARATIONS:  # in this order, because the version decides which feature gates there are
        if name in given:
            try:
                settings = replace(settings, **{name: DECLARATIONS[name].read(given[name])})
            except ValueError as exc:
                declaration = DECLARATIONS[name]
                where = declaration.flag if name in given_flags else declaration.variable
                raise StartUpError(f"{where}: {exc}") from exc
    if bool(settings.tls_cert_file) != bool(settings.tls_private_key_file):
        raise StartUpError("--tls-cert-file and --tls-private-key-file go together: give both, or none")
    if settings.client_ca_file is not None and settings.tls_cert_file is None and not settings.secure_port:
        raise StartUpError(
            "--client-ca-file: client certificates need HTTPS; give --secure-port, or --tls-cert-file and "
            "--tls-private-key-file"
        )
    if settings.secure_port and {"port"} & {*variables, *given_flags}:
        raise StartUpError("--secure-port and --port contradict each other: give one of them")
    # Half of the memory is for bodies, half for the what-if and the evaluation that are worked on at a time.
    room = _bytes_for_requests()
    if room is None:
        return settings
    fits = {"max_bodies": room // 2 // _BYTES_A_BYTE, "question_memory": room // 4}
    less = {
        name: max(limit, _LEAST)
        for name, limit in fits.items()
        if name not in {*variables, *given_flags} and limit < getattr(settings, name)
    }
    return replace(settings, **less)


_CGROUP: Final = Path("/sys/fs/cgroup")
_FILES: Final = (_CGROUP / "memory.max", _CGROUP / "memory" / "memory.limit_in_bytes")
"""Memory limits of control groups, of version 2 and of version 1."""

_WITHOUT_BODIES: Final = 200 * MIB
"""Memory in use before the first request, with a small cluster."""
_ADDRESSES: Final = 400 * MIB
"""The same, as mapped addresses."""
_BYTES_A_BYTE: Final = 5
"""Memory for a byte of a body until it is answered: itself, decoded, and the answer. 4.4 were measured."""
_LEAST: Final = 8 * MIB


def _bytes_for_requests() -> int | None:
    """Returns how much of the memory that the process may use is left for requests; None if it is not limited."""
    addresses, _ = resource.getrlimit(resource.RLIMIT_AS)
    rooms = [limit - _WITHOUT_BODIES for limit in map(_limit_in, _FILES) if limit is not None]
    if addresses != resource.RLIM_INFINITY:
        rooms.append(addresses - _ADDRESSES)
    return max(min(rooms), 0) if rooms else None


def _limit_in(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
