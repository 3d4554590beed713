"""What controllers make of objects: pods of templates, steps of a rollout, claims of pods, volumes of claims.

All of it is pure functions over JSON values. There is no cluster, no clock and no I/O here: `cluster.controllers`
write down what these functions return, and the what-ifs of `answers` play it through.
"""
