"""A Kubernetes API in memory: the default cluster, and what tests talk to.

`kube_api.KubeApi.handle` answers one request as kube-apiserver 1.36 would; there is no HTTP server in here. Objects are plain JSON
values: this is the one place that speaks every kind's whole form, and nothing that decides imports it.
"""
