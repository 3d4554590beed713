"""Deciding: which pod is next, which node is best, and who is evicted. No HTTP and no files.

From the top: `scheduler` and `evaluation`; `reporter`; `runtime` and `plugins`; `preemption`, `cache` and `queue`;
`framework`, the contract of plugins; `snapshot`, the cluster as arrays.
"""
