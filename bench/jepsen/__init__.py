"""Runs of real processes under faults, after the manner of Jepsen: a history is recorded, and judged afterwards.

`schedule` draws the faults of a seed, `network` and `machines` carry them out, `clients` use the cluster and watch it,
`history` is what is written down, `checker` judges it; `run` puts one run together. `python -m bench.jepsen` makes
many.
"""
