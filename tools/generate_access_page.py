"""Writes docs/access.md: who may call which endpoint, in each mode.

python -m tools.generate_access_page

The rules are stated here once more, apart from the code that holds them: a test asks running services, endpoint by
endpoint, and compares.
"""

import enum
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from starlette.routing import Route

from api.routes import extender
from api.routing import ROUTERS
from api.settings.settings import Settings

_HEAD: Final = """\
# Access

A caller is the user of a client certificate that `--client-ca-file` verifies (common name, with organizations as
groups), else of a bearer token that the API server knows (TokenReview), else of the page's cookie. An endpoint about
pods shows a user the names of those in namespaces where the user may list pods. Every other endpoint needs a rule of
the cluster for its path and method; on loopback only `/metrics/resources` does:

    kind: ClusterRole
    rules:
    - nonResourceURLs: [/metrics, /metrics/*]
      verbs: [get]

The verbs accept the common names in `--client-allowed-names` without a rule. `--authorization-always-allow-paths` opens
further paths to everyone. Reviews by the API server are cached for ten seconds.

"yes": the request is answered; "no names": the answer has no names of pods; 401 and 403: it is refused. A request
under a host name that the service does not know (DNS rebinding) gets 421. A page of another site may link to everything
that is only read; its other requests get 403. `bind` needs `--serve-bind`, too, and answers 404 otherwise.
"""


@final
class CallerKind(enum.Enum):
    """A kind of caller. The value is the heading of its column."""

    NOBODY = "nobody"
    WRONG_TOKEN = "wrong token"  # noqa: S105 - a heading
    TOKEN_WITHOUT_RIGHT = "token without rights"  # noqa: S105
    TOKEN_WITH_RIGHT = "token with rights"  # noqa: S105
    CERTIFICATE = "certificate without rights"
    ALLOWED_CERTIFICATE = "certificate with an allowed name"
    FOREIGN_PAGE = "page of another site"
    REBOUND_PAGE = "page whose name was rebound"


@final
@dataclass(frozen=True, slots=True)
class Mode:
    """A way in which the service is started."""

    name: str
    words: str
    is_embedded: bool = False
    opens_calls: bool = False
    opens_names: bool = False


MODES: Final = (
    Mode("reviewed", "A real cluster is followed, with `--access reviewed`; the default off loopback."),
    Mode(
        "local",
        "A real cluster is followed, and only this machine reaches the service: the default on loopback.",
        opens_calls=True,
    ),
    Mode("open", "A real cluster is followed, with `--access open`.", opens_calls=True, opens_names=True),
    Mode(
        "embedded reviewed",
        "The embedded cluster, with `--access reviewed`; the default off loopback. There is no API server to ask: only "
        "certificates tell "
        "who calls. The names in `--client-allowed-names` may do everything.",
        is_embedded=True,
    ),
    Mode(
        "embedded local",
        "The embedded cluster on loopback, or with `--access open`.",
        is_embedded=True,
        opens_calls=True,
        opens_names=True,
    ),
)


@final
class About(enum.Enum):
    """What an endpoint is about."""

    VERB = enum.auto()
    NAMES = enum.auto()
    """Pods of any namespace, with those names that the caller may see."""
    NAMED = enum.auto()
    """A pod that the request names."""
    PUBLIC = enum.auto()
    """Health, and the sign-in form."""
    OTHER = enum.auto()


@final
@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path and method."""

    method: str
    path: str
    about: About
    is_embedded: bool = False
    """True for the API of the embedded cluster."""


_NAMED: Final = ("GET /v1/explain/{namespace}/{pod}", "GET /v1/capacity", "GET /ui/pods/{namespace}/{name}")
_FORM: Final = ("/ui/sign-in", "/ui/sign-out", "/ui/static/{version}/{name}")


def endpoints() -> list[Endpoint]:
    """Returns every endpoint: those of the routes, some of the embedded cluster's API, and a path where there is
    nothing.
    """
    endpoints: list[Endpoint] = []
    for router in ROUTERS:
        prefix = Settings().prefix if router is extender.router else ""
        for route in router.routes:
            if isinstance(route, Route):
                path = prefix + route.path
                endpoints += [
                    Endpoint(method, path, _about(method, path))
                    for method in sorted(route.methods or ())
                    if method != "HEAD"
                ]
    for request in (
        "GET /api/v1/pods",
        "POST /api/v1/namespaces/{namespace}/pods",
        "DELETE /api/v1/namespaces/{namespace}/pods/{name}",
    ):
        method, _, path = request.partition(" ")
        endpoints.append(Endpoint(method, path, About.OTHER, is_embedded=True))
    endpoints += [Endpoint("GET", path, About.OTHER, is_embedded=True) for path in ("/apis", "/version", "/openapi/v2")]
    return [*endpoints, Endpoint("GET", "/any-other-path", About.OTHER)]


def _about(method: str, path: str) -> About:
    if path.startswith(f"{Settings().prefix}/"):
        return About.VERB
    if path in _FORM or path in Settings().always_allowed_paths:
        return About.PUBLIC
    if f"{method} {path}" in _NAMED:
        return About.NAMED
    is_about_names = path == "/" or path.startswith(("/v1/", "/ui/"))
    return About.NAMES if is_about_names and path != "/v1/evaluate" else About.OTHER


def cell(endpoint: Endpoint, mode: Mode, caller: CallerKind) -> str:
    """Returns what the caller gets: `yes`, `no names`, or the status of a refusal."""
    if caller is CallerKind.REBOUND_PAGE:
        return "421"
    if caller is CallerKind.FOREIGN_PAGE:
        return "403"
    shows_names = endpoint.about in (About.NAMES, About.NAMED) or endpoint.path == "/metrics/resources"
    if endpoint.about is About.PUBLIC or (mode.opens_names if shows_names else mode.opens_calls):
        return "yes"
    is_certified = caller in (CallerKind.CERTIFICATE, CallerKind.ALLOWED_CERTIFICATE)
    if mode.is_embedded:
        return "401" if not is_certified else "yes" if caller is CallerKind.ALLOWED_CERTIFICATE else "403"
    if caller in (CallerKind.NOBODY, CallerKind.WRONG_TOKEN):
        return "401"
    if caller is CallerKind.TOKEN_WITH_RIGHT or (
        caller is CallerKind.ALLOWED_CERTIFICATE and endpoint.about is About.VERB
    ):
        return "yes"
    return "no names" if endpoint.about is About.NAMES else "403"


def page() -> str:
    """Returns the whole text of docs/access.md."""
    groups = _groups()
    letters = {cells: chr(ord("A") + place) for place, cells in enumerate(groups)}
    lines = [_HEAD, "## Requests\n\nRequests with the same letter get the same answers.\n"]
    lines += ["| | requests |\n|---|---|"]
    for cells, group in groups.items():
        requests = ", ".join(f"`{endpoint.method} {endpoint.path}`" for endpoint in group)
        lines.append(f"| **{letters[cells]}** | {requests} |")
    lines.append("")
    return "\n".join([*lines, *(line for mode in MODES for line in _section(mode, groups, letters))])


_Cells = tuple[tuple[str, ...], ...]
_ALIKE: Final = (CallerKind.WRONG_TOKEN, CallerKind.FOREIGN_PAGE, CallerKind.REBOUND_PAGE)
_COLUMNS: Final = {caller: caller.value for caller in CallerKind if caller not in _ALIKE} | {
    CallerKind.NOBODY: "nobody, or a wrong token"
}
"""The columns of the page: a wrong token is treated as none, and pages of other sites are always refused."""


def _groups() -> dict[_Cells, list[Endpoint]]:
    """Returns the endpoints by what every caller gets in every mode."""
    groups: dict[_Cells, list[Endpoint]] = {}
    for endpoint in endpoints():
        served = (mode.is_embedded or not endpoint.is_embedded for mode in MODES)
        cells = tuple(
            tuple(cell(endpoint, mode, caller) for caller in CallerKind) if is_served else ()
            for mode, is_served in zip(MODES, served, strict=True)
        )
        groups.setdefault(cells, []).append(endpoint)
    return groups


def _section(mode: Mode, groups: Mapping[_Cells, Sequence[Endpoint]], letters: Mapping[_Cells, str]) -> Iterator[str]:
    """Yields the lines of a mode's table. Groups with the same cells share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for cells in groups:
        if of_mode := cells[MODES.index(mode)]:
            rows.setdefault(of_mode, []).append(letters[cells])
    yield f"## {mode.name.capitalize()}\n"
    yield f"{mode.words}\n"
    yield f"| | {' | '.join(_COLUMNS.values())} |"
    yield "|---" * (1 + len(_COLUMNS)) + "|"
    for shared, sharing in rows.items():
        answers = (cell for caller, cell in zip(CallerKind, shared, strict=True) if caller in _COLUMNS)
        yield f"| **{', '.join(sharing)}** | {' | '.join(answers)} |"
    yield ""


def main() -> None:
    """Writes the file, by default docs/access.md in the current folder."""
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/access.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
