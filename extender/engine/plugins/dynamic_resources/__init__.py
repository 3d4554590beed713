"""DynamicResources: allocates devices to the resource claims of pods.

`plugin` has the extension points; `pod_claims` finds the claims of a pod; `allocation` searches `pools` for the devices
that `requests` describe, within `constraints`; `cel` evaluates device selectors.

This package does not write to the API server by itself: writes are values that the dispatcher performs.
"""
