"""Every endpoint, in every mode, for every kind of caller: asked of running services, and compared with
docs/access.md.
"""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app import create_app
from api.documents.documentation import BY_NAME
from api.settings.settings import Settings
from api.ui.frame import assets
from tests.api.test_reviewed_cluster import Reviews
from tests.kit.certificates import Authority, CertificateFiles
from tests.kit.service import Service, kubeconfig_for, serving, serving_app
from tests.kit.waiting import until
from tools.generate_access_page import MODES, CallerKind, Endpoint, Mode, cell, endpoints, page

ROOT = Path(__file__).parents[2]
SCHEDULER = "system:kube-scheduler"
PARAMETERS = {
    "namespace": "shop", "pod": "urgent", "name": "urgent", "node": "node-0", "id": "1", "number": "1", "check": "ping",
}  # fmt: skip
PATHS = {
    "GET /ui/{path:path}": "/ui/nothing",
    "GET /ui/nodes/{name}": "/ui/nodes/node-0",
    "GET /ui/static/{version}/{name}": f"/ui/static/{assets().version}/page.css",
    "GET /v1/capacity": "/v1/capacity?pod=shop/urgent",
}
NAMES = ("too-large", "batch-0")
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "reviewed": {"access": "reviewed"},
    "local": {},
    "open": {"access": "open"},
    "embedded reviewed": {"access": "reviewed"},
    "embedded local": {},
}


@dataclass(frozen=True)
class Certificates:
    authority: Path
    server: CertificateFiles
    scheduler: CertificateFiles
    other: CertificateFiles
    forged: CertificateFiles
    """Of the scheduler's name, by another authority."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    authority, another = Authority(folder, "authority"), Authority(folder, "another")
    return Certificates(
        authority.certificate,
        authority.sign("server", "IP:127.0.0.1", "DNS:reprieve.test"),
        authority.sign(SCHEDULER),
        authority.sign("other", organizations=("team-a", "team-b")),
        another.sign(SCHEDULER),
    )


@pytest.fixture(scope="module")
def reviews() -> Reviews:
    tokens = {"admins-token": "admin", "guests-token": "guest"}
    return Reviews(create_app(Settings()), tokens, lambda spec: bool(spec["user"] == "admin"))


@pytest.fixture(scope="module")
def api_server(reviews: Reviews, dump: Path) -> Iterator[Service]:
    settings = Settings(port=0, state=dump, schedule=False)
    reviews.server = create_app(settings)
    with serving_app(reviews, settings) as service:
        yield service


@pytest.fixture(scope="module")
def services(
    api_server: Service, certificates: Certificates, dump: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Service]]:
    """A service in each mode, over TLS."""
    folder = tmp_path_factory.mktemp("modes")
    common: dict[str, Any] = {
        "serve_bind": True,
        "tls_cert_file": certificates.server.certificate,
        "tls_private_key_file": certificates.server.key,
        "client_ca_file": certificates.authority,
        "client_allowed_names": f" someone , {SCHEDULER}",
    }
    with ExitStack() as stack:
        services_by_mode = {}
        for mode in MODES:
            source: dict[str, Any] = (
                {"state": dump, "schedule": False}
                if mode.is_embedded
                else {"kubeconfig": kubeconfig_for(api_server.port, folder)}
            )
            services_by_mode[mode.name] = stack.enter_context(serving(**common, **source, **SETTINGS[mode.name]))

            def is_ready(name: str = mode.name) -> bool:
                return ask(services_by_mode[name], certificates, CallerKind.NOBODY, "GET", "/readyz")[0] == 200

            until(is_ready)
        yield services_by_mode


def client(certificates: Certificates, caller: CallerKind | CertificateFiles | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificates.authority))
    files = {CallerKind.CERTIFICATE: certificates.other, CallerKind.ALLOWED_CERTIFICATE: certificates.scheduler}
    chosen = caller if isinstance(caller, CertificateFiles) else files.get(caller) if caller is not None else None
    if chosen is not None:
        context.load_cert_chain(*chosen)
    return context


def headers_of(caller: CallerKind) -> dict[str, str]:
    tokens = {
        CallerKind.WRONG_TOKEN: "stolen",
        CallerKind.TOKEN_WITHOUT_RIGHT: "guests-token",
        CallerKind.TOKEN_WITH_RIGHT: "admins-token",
    }
    if caller in tokens:
        return {"Authorization": f"Bearer {tokens[caller]}"}
    if caller is CallerKind.FOREIGN_PAGE:
        return {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    if caller is CallerKind.REBOUND_PAGE:
        return {"Host": "rebound.test", "Origin": "https://rebound.test", "Sec-Fetch-Site": "same-origin"}
    return {}


def ask(service: Service, certificates: Certificates, caller: CallerKind, method: str, path: str) -> tuple[int, str]:
    with http(service, certificates, caller) as asking:
        return answer_to(asking, caller, method, path)


def http(service: Service, certificates: Certificates, caller: CallerKind | CertificateFiles | None) -> httpx.Client:
    return httpx.Client(
        base_url=f"https://127.0.0.1:{service.port}", verify=client(certificates, caller), trust_env=False, timeout=60
    )


def answer_to(asking: httpx.Client, caller: CallerKind, method: str, path: str) -> tuple[int, str]:
    """The status, and the text up to a megabyte; of a stream only the status."""
    body = None if method in ("GET", "DELETE") else b"x" if path.startswith("/debug") else b"{}"
    headers = headers_of(caller) | (
        {"Content-Type": "text/plain" if path.startswith("/debug") else "application/json"} if body else {}
    )
    with asking.stream(method, path, headers=headers, content=body) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer.status_code, ""
        return answer.status_code, answer.read().decode()


def outcome(endpoint: Endpoint, status: int, text: str) -> str:
    if status in (401, 403, 421):
        return str(status)
    assert status < 500, (endpoint, status, text)
    return "yes" if any(name in text for name in NAMES) else "no names"


def path_of(endpoint: Endpoint) -> str:
    return PATHS.get(f"{endpoint.method} {endpoint.path}") or endpoint.path.format_map(PARAMETERS)


@pytest.mark.parametrize("caller", CallerKind, ids=lambda caller: caller.value)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_no_cell_is_unexpected(
    services: dict[str, Service], certificates: Certificates, mode: Mode, caller: CallerKind
) -> None:
    expected, outcomes = {}, {}
    with http(services[mode.name], certificates, caller) as asking:
        for endpoint in endpoints():
            if endpoint.is_embedded and not mode.is_embedded:
                continue
            name = f"{endpoint.method} {endpoint.path}"
            expected[name] = cell(endpoint, mode, caller)
            outcomes[name] = outcome(endpoint, *answer_to(asking, caller, endpoint.method, path_of(endpoint)))
            if expected[name] == "yes" and outcomes[name] == "no names":
                outcomes[name] = "yes"  # an answer that is not about names, or about none at the moment

    assert outcomes == expected


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "access.md").read_text() == page(), "run `make docs`"


# The chain.


def test_the_api_server_is_asked_about_path_and_method_for_the_user_and_groups_of_the_certificate(
    services: dict[str, Service], certificates: Certificates, reviews: Reviews
) -> None:
    before = len(reviews.asked)

    status, text = ask(services["reviewed"], certificates, CallerKind.CERTIFICATE, "PUT", "/debug/flags/v")

    assert status == 403
    assert json.loads(text)["message"] == 'user "other" cannot put this path: no rule for nonResourceURLs allows it'
    specs = [spec for spec in reviews.asked[before:] if "nonResourceAttributes" in spec] or reviews.asked
    assert {
        "user": "other",
        "uid": "",
        "groups": ["team-a", "team-b", "system:authenticated"],
        "extra": {},
        "nonResourceAttributes": {"path": "/debug/flags/v", "verb": "put"},
    } in specs


def test_a_certificate_goes_before_a_token(services: dict[str, Service], certificates: Certificates) -> None:
    """Both may be sent; as in kube-scheduler, the first that tells who calls counts."""
    with http(services["reviewed"], certificates, CallerKind.ALLOWED_CERTIFICATE) as asking:
        filtered = asking.post("/extender/filter", json={}, headers={"Authorization": "Bearer stolen"})
        metrics = asking.get("/metrics", headers={"Authorization": "Bearer admins-token"})

    assert (filtered.status_code, metrics.status_code) == (400, 403)


@pytest.mark.parametrize("mode", ["reviewed", "local"])
def test_records_name_the_caller_of_a_verb(services: dict[str, Service], certificates: Certificates, mode: str) -> None:
    with http(services[mode], certificates, CallerKind.ALLOWED_CERTIFICATE) as asking:
        asking.post("/extender/filter", json=BY_NAME).raise_for_status()
    status, text = ask(services[mode], certificates, CallerKind.TOKEN_WITH_RIGHT, "GET", "/v1/decisions")

    assert status == 200
    assert json.loads(text)["items"][0]["caller"] == SCHEDULER


def test_a_certificate_of_another_authority_gets_no_connection(
    services: dict[str, Service], certificates: Certificates
) -> None:
    with http(services["reviewed"], certificates, certificates.forged) as asking, pytest.raises(httpx.TransportError):
        asking.get("/livez")


def test_only_exact_health_paths_are_answered_without_a_token(
    services: dict[str, Service], certificates: Certificates
) -> None:
    """What a single check says may name objects; kube-scheduler guards it, too."""
    paths = ["/healthz", "/livez", "/readyz", "/readyz/informer-sync?verbose", "/healthz/ping", "/metrics/slis"]

    statuses = [ask(services["reviewed"], certificates, CallerKind.NOBODY, "GET", path)[0] for path in paths]

    assert statuses == [200, 200, 200, 401, 401, 401]


def test_paths_may_be_opened_to_everyone(certificates: Certificates) -> None:
    with serving(
        access="reviewed", client_allowed_names="x", schedule=False, authorization_always_allow_paths="metrics,/ui*"
    ) as service:
        codes = [service.client.get(path).status_code for path in ("/metrics", "/metrics/slis", "/livez", "/configz")]

    assert codes == [200, 401, 401, 401]
