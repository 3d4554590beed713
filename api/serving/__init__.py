"""The HTTP server: its connections and limits, its certificate, when it ends, and whether its event loop stands still.

What requests are answered with is in `api.routes`.
"""
