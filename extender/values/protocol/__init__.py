"""The scheduler extender protocol, for both sides: wire types, arguments and results, read and written.

`api/routes/extender.py` serves it, `extender.client.http_extender` calls other extenders. Nothing is decided in here,
and nothing is sent.

Upstream: kube-scheduler/extender/v1; pkg/scheduler/extender.go.
"""
