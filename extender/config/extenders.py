"""The HTTP extenders that a configuration names.

Upstream: kube-scheduler/config/v1, types.go, Extender.
"""

from dataclasses import dataclass, field
from typing import Final

from extender.config.json_types import BYTES, DURATION, struct_of, wire
from extender.golang.durations import Duration
from extender.golang.schema import BOOL, INT64, STRING, ListOf


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderTLSConfig:
    """How the extender is reached over TLS. Data comes before files, and is PEM."""

    insecure: bool = field(default=False, metadata=wire(BOOL, omit_empty=True))
    server_name: str = field(default="", metadata=wire(STRING, omit_empty=True))
    cert_file: str = field(default="", metadata=wire(STRING, omit_empty=True))
    key_file: str = field(default="", metadata=wire(STRING, omit_empty=True))
    ca_file: str = field(default="", metadata=wire(STRING, omit_empty=True))
    cert_data: bytes = field(default=b"", metadata=wire(BYTES, omit_empty=True), repr=False)
    key_data: bytes = field(default=b"", metadata=wire(BYTES, omit_empty=True), repr=False)
    ca_data: bytes = field(default=b"", metadata=wire(BYTES, omit_empty=True), repr=False)

    @property
    def has_ca(self) -> bool:
        """Whether it says whom to trust."""
        return bool(self.ca_file or self.ca_data)


@dataclass(frozen=True, slots=True)
class ExtenderManagedResource:
    """An extended resource for which the extender is asked; the scheduler itself may ignore it."""

    name: str = field(default="", metadata=wire(STRING))
    ignored_by_scheduler: bool = field(default=False, metadata=wire(BOOL, omit_empty=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extender:
    """An HTTP extender. A verb that is empty is not asked for; without managed resources every pod is sent."""

    url_prefix: str = field(default="", metadata=wire(STRING))
    filter_verb: str = field(default="", metadata=wire(STRING, omit_empty=True))
    preempt_verb: str = field(default="", metadata=wire(STRING, omit_empty=True))
    prioritize_verb: str = field(default="", metadata=wire(STRING, omit_empty=True))
    weight: int = field(default=0, metadata=wire(INT64, omit_empty=True))
    bind_verb: str = field(default="", metadata=wire(STRING, omit_empty=True))
    enable_https: bool = field(default=False, metadata=wire(BOOL, name="enableHTTPS", omit_empty=True))
    tls_config: ExtenderTLSConfig | None = field(
        default=None, metadata=wire(struct_of(ExtenderTLSConfig, "v1.ExtenderTLSConfig"), omit_none=True)
    )
    http_timeout: Duration = field(default=Duration.of(5), metadata=wire(DURATION, zero_is_default=True))
    node_cache_capable: bool = field(default=False, metadata=wire(BOOL, omit_empty=True))
    managed_resources: tuple[ExtenderManagedResource, ...] = field(
        default=(), metadata=wire(ListOf(struct_of(ExtenderManagedResource, "v1.ExtenderManagedResource"), make=tuple), omit_empty=True)
    )
    ignorable: bool = field(default=False, metadata=wire(BOOL, omit_empty=True))


EXTENDER: Final = struct_of(Extender, "v1.Extender")
