"""How the service is set up: from the environment (REPRIEVE_PORT and so on), then from flags."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from api.fatal_errors import StartUpError
from api.feature_gates import check_feature_gates
from api.memory import bytes_for_bodies
from extender.golang.durations import Duration

PREFIX: Final = "REPRIEVE_"

MIB: Final = 2**20

EXAMPLE_CLUSTER: Final = Path(__file__).parent / "examples" / "cluster.yaml"

Seconds = Annotated[float, Field(gt=0, le=3600)]
Span = Annotated[Duration, BeforeValidator(lambda value: Duration.parse(value) if isinstance(value, str) else value)]
Bytes = Annotated[int, Field(ge=1024, le=2**40)]


class Settings(BaseModel):
    """The settings. The environment variable of each is its name in capitals after `REPRIEVE_`."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8888, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    prefix: str = Field(default="/extender", description="path before the verbs, as in kube-scheduler's urlPrefix")
    kubeconfig: Path | None = Field(default=None, description="the cluster to follow; without one, the cluster we run in, else our own")
    context: str | None = Field(default=None, description="context of the kubeconfig; without one its current context")
    state: Path | None = Field(default=None, description="what our own cluster begins with: a List as kubectl prints it, .gz welcome")
    save: Path | None = Field(default=None, description="file that our own cluster is saved to, and begins with if it is there")
    kubernetes_port: int = Field(default=8080, ge=0, le=65535, description="further port, for kubectl to reach our own cluster")
    schedule: bool | None = Field(default=None, description="schedule the pods; without a word, those of our own cluster only")
    leader_elect: bool | None = Field(
        default=None, description="of several replicas that schedule a cluster, one does; without a word, as the configuration says"
    )
    kubelet: bool = Field(default=True, description="in our own cluster, bound pods run and deleted pods end")
    config: Path | None = Field(default=None, description="KubeSchedulerConfiguration file; without one its defaults hold")
    master: str | None = Field(default=None, description="URL of the API server to follow, instead of the kubeconfig's")
    secure_port: int | None = Field(default=None, ge=0, le=65535, description="port to listen on with HTTPS only, instead of port")
    tls_cert_file: Path | None = Field(default=None, description="certificate in PEM, its chain behind it; with it HTTPS is spoken")
    tls_private_key_file: Path | None = Field(default=None, description="the certificate's key in PEM")
    tls_min_version: Literal["VersionTLS12", "VersionTLS13"] = Field(default="VersionTLS12", description="the oldest TLS that is spoken")
    leader_elect_lease_duration: Span | None = Field(default=None, description="see leaderElection.leaseDuration of the configuration")
    leader_elect_renew_deadline: Span | None = Field(default=None, description="see leaderElection.renewDeadline")
    leader_elect_retry_period: Span | None = Field(default=None, description="see leaderElection.retryPeriod")
    leader_elect_resource_lock: str | None = Field(default=None, description="see leaderElection.resourceLock")
    leader_elect_resource_name: str | None = Field(default=None, description="see leaderElection.resourceName")
    leader_elect_resource_namespace: str | None = Field(default=None, description="see leaderElection.resourceNamespace")
    kube_api_qps: float | None = Field(default=None, description="see clientConnection.qps; a configuration file has the last word")
    kube_api_burst: int | None = Field(default=None, description="see clientConnection.burst; a configuration file has the last word")
    profiling: bool | None = Field(default=None, description="see enableProfiling; a configuration file has the last word")
    pod_max_in_unschedulable_pods_duration: Span = Field(
        default=Duration.of(300), description="pods that were refused are tried after it anyhow"
    )
    feature_gates: str = Field(default="", description="kube-scheduler's, A=true,B=false; only what holds may be asked for")
    v: int = Field(default=0, ge=0, le=100, description="how much is logged, as klog counts it")
    vmodule: str = Field(default="", description="how much single files log: scheduler=5,queue*=3")
    logging_format: Literal["text", "json"] = Field(default="text", description="form of the log's lines")
    disabled_metrics: str = Field(default="", description="names of metrics that are not shown, with commas between")
    records: Path | None = Field(default=None, description="file that keeps what was decided; without one it is known until the end")
    access: Literal["open", "reviewed"] | None = Field(
        default=None, description="who may see names of pods under /v1: everybody, or as the cluster that is followed says"
    )
    full_nodes: bool = Field(default=True, description="accept bodies as large as thousands of nodes in full (nodeCacheCapable: false)")

    max_body: Bytes = Field(default=8 * MIB, description="bytes of a body while full nodes are not accepted")
    max_full_nodes_body: Bytes = Field(default=128 * MIB, description="bytes of a body while they are")
    max_bodies: Bytes = Field(default=256 * MIB, description="bytes of all bodies that are being answered at one time")
    max_head: Bytes = Field(default=64 * 1024, description="bytes of a request's line and headers")
    max_headers: int = Field(default=100, ge=10, le=10_000, description="headers of a request")
    max_in_flight: int = Field(default=66, ge=1, le=100_000, description="requests answered at one time; probes of health come on top")
    head_seconds: Seconds = Field(default=10, description="for a request's line and headers to arrive")
    body_seconds: Seconds = Field(default=10, description="for a body to arrive")
    # Go keeps idle connections for 90 s; a server that closes earlier makes it send into a closed connection now and then.
    keep_alive_seconds: int = Field(default=150, ge=1, le=3600, description="idle connections are kept for this long")

    @field_validator("prefix")
    @classmethod
    def _with_one_slash(cls, value: str) -> str:
        path = value.strip("/")
        if not path.isascii() or any(c in path for c in " %?#{}\\") or "//" in path or not path.isprintable():
            raise ValueError("must be a plain path such as /extender")
        return f"/{path}" if path else ""

    @field_validator("feature_gates")
    @classmethod
    def _that_hold(cls, value: str) -> str:
        check_feature_gates(value)
        return value

    @field_validator("vmodule")
    @classmethod
    def _of_patterns(cls, value: str) -> str:
        _patterns(value)
        return value

    @property
    def verbosity_by_file(self) -> list[tuple[str, int]]:
        """(pattern, verbosity)."""
        return _patterns(self.vmodule)

    @property
    def listening_port(self) -> int:
        """The one for calls."""
        return self.secure_port or self.port

    @property
    def body_limit(self) -> int:
        """Bytes of the largest body that is read."""
        return max(self.max_body, self.max_full_nodes_body) if self.full_nodes else self.max_body


def _patterns(text: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for pair in filter(None, text.split(",")):
        pattern, _, level = pair.partition("=")
        if not pattern or not (level.isascii() and level.isdigit()):
            raise ValueError("syntax error: expect comma-separated list of filename=N")
        found.append((pattern.removesuffix(".py"), int(level)))
    return found


def read_settings(environment: Mapping[str, str] = os.environ, **flags: object) -> Settings:
    """The settings that the environment says, with the flags that are not None over them.

    Raises:
        StartUpError: a variable or flag has no value that it can have.
    """
    said = {name: environment[PREFIX + name.upper()] for name in Settings.model_fields if environment.get(PREFIX + name.upper())}
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        settings = Settings.model_validate({**said, **given})
    except ValidationError as exc:
        error = exc.errors(include_input=False, include_url=False, include_context=False)[0]
        name = str(error["loc"][0])
        where = f"--{name.replace('_', '-')}" if name in given else PREFIX + name.upper()
        raise StartUpError(f"{where}: {_in_words(error['msg'])}") from exc
    if bool(settings.tls_cert_file) != bool(settings.tls_private_key_file):
        raise StartUpError("--tls-cert-file and --tls-private-key-file go together: give both, or none")
    if settings.secure_port and settings.tls_cert_file is None:
        raise StartUpError("--secure-port: no certificate is made up here; give one with --tls-cert-file and --tls-private-key-file")
    if settings.secure_port and {"port"} & {*said, *given}:
        raise StartUpError("--secure-port and --port say two things: give one of them")
    room = bytes_for_bodies()
    if room is not None and room < settings.max_bodies and "max_bodies" not in {*said, *given}:
        return settings.model_copy(update={"max_bodies": room})
    return settings


def _in_words(message: str) -> str:
    """Our own errors in full; pydantic's begin with a capital."""
    own = message.removeprefix("Value error, ")
    return own if own != message else message.lower()
