"""Extenders that are named by a configuration or by a URL, to be examined or to be called by kube-scheduler."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from extender.values.config.configuration import Extender, ExtenderTLSConfig
from extender.values.golang.times import Duration
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError
from reprieve.sources.configurations import read_configuration

VERBS: Final = ("filter", "prioritize", "preempt", "bind")
_PREFIX: Final = "/extender"
_PEM: Final = b"-----BEGIN CERTIFICATE-----"


def from_configuration(config: Path | None) -> Iterator[tuple[str, Extender]]:
    """Yields the extenders of a configuration, each with its title. Raises StartUpError if it names none."""
    if config is None:
        raise StartUpError(
            "give the urlPrefix of an extender, or --config with a KubeSchedulerConfiguration that names some"
        )
    extenders = read_configuration(config).extenders
    if not extenders:
        raise StartUpError(f"configuration {config} names no extender")
    for extender in extenders:
        yield f"{extender.url_prefix} ({'names' if extender.node_cache_capable else 'full nodes'})", extender


def from_url(
    url: str, verbs: str, form: str, timeout: int, ca_file: Path | None, insecure: bool
) -> Iterator[tuple[str, Extender]]:
    """Yields the extender at the URL, for each form in which nodes are sent. Raises StartUpError as it is iterated."""
    if not url.startswith(("http://", "https://")):
        raise StartUpError(f"{url}: not an address; it begins with http:// or https://")
    if form not in ("full", "names", "both"):
        raise StartUpError("--form: full, names or both")
    paths = {verb: path or verb for verb, _, path in (entry.partition("=") for entry in verbs.split(",") if entry)}
    strange = sorted(paths.keys() - {*VERBS})
    if strange:
        raise StartUpError(
            f"--verbs: {strange[0]} is none of {', '.join(VERBS)}; write preempt=PATH for a verb of another name"
        )
    tls = (
        ExtenderTLSConfig(insecure=insecure, ca_file=str(ca_file) if ca_file else "")
        if url.startswith("https://")
        else None
    )
    for is_by_name in (False, True):
        if form in ("both", "names" if is_by_name else "full"):
            yield (
                f"{url} ({'names' if is_by_name else 'full nodes'})",
                Extender(
                    url_prefix=url,
                    filter_verb=paths.get("filter", ""),
                    prioritize_verb=paths.get("prioritize", ""),
                    preempt_verb=paths.get("preempt", ""),
                    bind_verb=paths.get("bind", ""),
                    weight=1,
                    enable_https=insecure or ca_file is not None,
                    tls_config=tls,
                    http_timeout=Duration.of(timeout),
                    node_cache_capable=is_by_name,
                ),
            )


def called_over(url: str, ca_file: Path | None, verbs: str) -> Extender:
    """Returns a Reprieve at the URL as kube-scheduler calls it. Raises StartUpError for what cannot be called."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise StartUpError(f"--url {url}: not an address; write https://HOST:PORT")
    called = [verb for verb in verbs.split(",") if verb]
    strange = sorted({*called} - {*VERBS})
    if strange or not called:
        raise StartUpError(f"--verbs {verbs}: {strange[0] if strange else 'nothing'} is none of {', '.join(VERBS)}")
    is_encrypted = parts.scheme == "https"
    if is_encrypted and ca_file is None:
        raise StartUpError(
            "--ca-file: give the certificates (PEM) of who signed Reprieve's: kube-scheduler trusts no others "
            "(kubectl get secret SECRET -o jsonpath='{.data.ca\\.crt}' | base64 -d > ca.crt)"
        )
    prefix = url.rstrip("/") if parts.path.strip("/") else f"{url.rstrip('/')}{_PREFIX}"
    return Extender(
        url_prefix=prefix,
        filter_verb="filter" if "filter" in called else "",
        prioritize_verb="prioritize" if "prioritize" in called else "",
        preempt_verb="preempt" if "preempt" in called else "",
        bind_verb="bind" if "bind" in called else "",
        enable_https=is_encrypted,
        tls_config=ExtenderTLSConfig(ca_data=_certificates(ca_file)) if is_encrypted and ca_file is not None else None,
    )


def _certificates(file: Path) -> bytes:
    try:
        text = file.read_bytes()
    except OSError as exc:
        raise StartUpError(f"--ca-file {file}: {in_one_line(exc)}") from exc
    if _PEM not in text:
        raise StartUpError(f"--ca-file {file}: holds no certificate in PEM form, which begins with {_PEM.decode()}")
    return text
