"""Answers for people: why a pod is pending, who would be evicted, what would happen if.

Every answer is worked out by the engine that decides, and is a value (`types`). Nothing here changes a cluster: explaining looks at the
live columns, a what-if has a copy of its own.
"""
