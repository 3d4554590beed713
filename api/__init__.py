"""The HTTP service and the command line, over the engine in `extender`.

    settings   what an operator sets, by flags and the environment
    serving    the HTTP server: connections, limits, certificate
    callers    who sends a request, what they may see, and how a request is refused
    routes     one module a family of paths
    documents  what the OpenAPI document says of them
    ui         the page
    cli        the command `reprieve`
    doctor     the checks of `reprieve doctor`

`starting` opens the service that the settings describe, `service_state` is what the routes share of it, `app` puts both
behind FastAPI. Everything here decodes, calls the engine and encodes. No decision about a pod is made in this package.
"""
