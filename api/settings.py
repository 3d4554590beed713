"""How the service is set up: from the environment (REPRIEVE_PORT and so on), then from flags."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

PREFIX: Final = "REPRIEVE_"

MIB: Final = 2**20

EXAMPLE_CLUSTER: Final = Path(__file__).parent / "examples" / "cluster.yaml"

Seconds = Annotated[float, Field(gt=0, le=3600)]
Bytes = Annotated[int, Field(ge=1024, le=2**40)]


class StartUpError(Exception):
    """The service cannot start. The message is one line that says what to do."""


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

    @property
    def body_limit(self) -> int:
        """Bytes of the largest body that is read."""
        return max(self.max_body, self.max_full_nodes_body) if self.full_nodes else self.max_body


def read_settings(environment: Mapping[str, str] = os.environ, **flags: object) -> Settings:
    """The settings that the environment says, with the flags that are not None over them.

    Raises:
        StartUpError: a variable or flag has no value that it can have.
    """
    said = {name: environment[PREFIX + name.upper()] for name in Settings.model_fields if environment.get(PREFIX + name.upper())}
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings.model_validate({**said, **given})
    except ValidationError as exc:
        error = exc.errors(include_input=False, include_url=False, include_context=False)[0]
        name = str(error["loc"][0])
        where = f"--{name.replace('_', '-')}" if name in given else PREFIX + name.upper()
        raise StartUpError(f"{where}: {error['msg'].lower()}") from exc
