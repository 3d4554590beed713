"""Answers for people: why a pod is pending, who would be evicted, what would happen if.

The engine that decides computes every answer, and an answer is a plain value (`types`). Nothing here changes a cluster:
an explanation reads the live columns, and a what-if works on a copy.
"""
