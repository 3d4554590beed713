"""Why a pod is pending, what would help it, and where it waits. No text in here names another pod, except as a
victim.
"""
