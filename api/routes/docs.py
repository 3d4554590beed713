"""GET /openapi.json, /docs, the same as a page that loads nothing else, and the JSON Schema of the protocol."""

import json
from html import escape
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from api.documents.extender_schema import PATH, extender_schema

router: Final = APIRouter()

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
_BASE: Final = "{base}"
"""Stands for the address at which the caller reaches the service, which differs between callers."""
_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff }
code, pre { font: 14px/1.45 ui-monospace, monospace }
pre { background: #f3f4f6; padding: .8rem; overflow-x: auto; border-radius: 6px }
h2 { border-top: 1px solid #d0d4da; padding-top: 1rem }
b { font-size: .8em; background: #1f4e8c; color: #fff; padding: .15em .5em; border-radius: 4px }
table { border-collapse: collapse } td { padding: .15rem .8rem .15rem 0; vertical-align: top }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #16181c } pre { background: #22262d } h2 { border-color: #3a404a }
  a { color: #8ab4f8 }
}
"""


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Returns the OpenAPI document."""
    return Response(_openapi(request.app), media_type="application/json")


@router.get("/docs", include_in_schema=False)
async def page(request: Request) -> HTMLResponse:
    """Describes what every path takes and answers, with examples to paste into a shell."""
    text = _page(request.app)
    return HTMLResponse(
        text.replace(_BASE, escape(str(request.base_url).rstrip("/"))), headers={"Content-Security-Policy": _POLICY}
    )


@router.get(PATH, include_in_schema=False)
async def schema(request: Request) -> Response:
    """Returns the JSON Schema of the extender protocol."""
    return Response(_schema(request.app), media_type="application/schema+json")


def _openapi(app: FastAPI) -> str:
    return json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":"))


def _schema(app: FastAPI) -> str:
    return json.dumps(extender_schema(app.openapi()), ensure_ascii=False, separators=(",", ":"))


def _page(app: FastAPI) -> str:
    document = app.openapi()
    sections = [
        _section(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    title = f"{document['info']['title']} {document['info']['version']}"
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>
<p>{escape(document["info"]["description"])} The schemas are in <a href="openapi.json">openapi.json</a>;
those of the extender protocol are also in a <a href="{PATH[1:]}">JSON Schema</a>.</p>
{"".join(sections)}</body></html>"""


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    answers = "".join(
        f"<tr><td><code>{escape(code)}</code></td><td>{escape(answer['description'])}</td></tr>"
        for code, answer in operation["responses"].items()
    )
    examples = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("examples", {})
    shown = "".join(
        f"<p>{escape(name)}</p><pre>{escape(_curl(_BASE + path, example['value']))}</pre>"
        for name, example in examples.items()
    )
    words = escape(operation.get("description") or operation.get("summary", ""))
    return f"<h2><b>{method.upper()}</b> <code>{escape(path)}</code></h2><p>{words}</p>{shown}<table>{answers}</table>"


def _curl(url: str, body: object) -> str:
    return f"curl -s -H 'Content-Type: application/json' {url} -d '{json.dumps(body, indent=1)}'"
