"""A Kubernetes API server in memory, and the controllers that keep a cluster moving. There is no HTTP server and no
scheduler in here.

A request takes this way: `kube_api` asks `requests` what it says; `registry` reads, changes and removes objects by the
rules of `schema`, `admission`, `validation` and `patches`, and keeps them in `store`; `responses` shows them.
`controllers` act on the registry like anybody else. `dumps` reads and writes whole clusters, `transport` lets an httpx
client reach the API without a socket.
"""
