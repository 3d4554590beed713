"""GET /openapi.json, /docs (FastAPI's page about it with our Swagger UI), and the protocol's JSON Schema."""

import hashlib
import json
import re
from base64 import b64encode
from importlib import resources
from typing import Final

from fastapi import APIRouter, HTTPException, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, Response

from api.documents.documentation import plain
from api.ui.frame import assets
from reprieve.lab.extender_schema import PATH, extender_schema

router: Final = APIRouter()

_SWAGGER_UI: Final = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
}
"""Its files in api/documents/swagger_ui, compressed, and their types."""
_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'sha256-{script}'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    text = json.dumps(request.app.openapi(), ensure_ascii=False, separators=(",", ":"))
    return Response(text, media_type="application/json")


@router.get("/docs", include_in_schema=False)
async def page(request: Request) -> HTMLResponse:
    """Describes all requests, and lets one try them."""
    text = bytes(
        get_swagger_ui_html(
            openapi_url="openapi.json",
            title=f"Reprieve {request.app.version}: requests",
            swagger_js_url="docs/swagger-ui-bundle.js",
            swagger_css_url="docs/swagger-ui.css",
            swagger_favicon_url=assets().path("icon.svg").lstrip("/"),
            swagger_ui_parameters={"filter": True, "tryItOutEnabled": True},
        ).body
    ).decode()
    text = text.replace("<html>", '<html lang="en">')
    script = b64encode(hashlib.sha256("".join(_SCRIPT.findall(text)).encode()).digest()).decode()
    return HTMLResponse(text, headers={"Content-Security-Policy": _POLICY.format(script=script)})


@router.get("/docs/{name}", include_in_schema=False)
async def swagger_ui(name: str) -> Response:
    """Sends a file of Swagger UI, compressed, as every browser takes it."""
    if name not in _SWAGGER_UI:
        raise HTTPException(404)
    content = (resources.files("api.documents") / "swagger_ui" / f"{name}.gz").read_bytes()
    headers = {"Content-Encoding": "gzip", "Cache-Control": "public, max-age=86400"}
    return Response(content, media_type=_SWAGGER_UI[name], headers=headers)


@router.get(PATH, tags=["extender"], **plain("The schema.", "application/schema+json"))
async def json_schema(request: Request) -> Response:
    """The JSON Schema of the requests and answers of the four verbs."""
    text = json.dumps(extender_schema(request.app.openapi()), ensure_ascii=False, separators=(",", ":"))
    return Response(text, media_type="application/schema+json")
