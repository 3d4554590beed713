"""The scheduling cycle finds a pod a node, the binding cycle binds it, and a failure sends it back to the queue."""
