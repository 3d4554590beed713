"""The scheduler extender protocol, both ways: the types on the wire, arguments and results, read and written.

`api/routes/extender.py` serves it, `extender.http_extender` calls others that do. Nothing is decided here, and nothing is sent.

Upstream: kube-scheduler/extender/v1; pkg/scheduler/extender.go.
"""
