"""What happens to a pod: the scheduling cycle finds it a node, the binding cycle binds it, and a failure sends it back
to the queue.
"""
