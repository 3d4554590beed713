"""DynamicResources: allocates devices to the resource claims of pods.

`plugin` has the extension points; `pod_claims` finds the claims of a pod; `allocation` searches `pools` for the devices that `requests`
describe, within `constraints` and `capacities`; `cel` evaluates device selectors.

This package does not write to the API server by itself. Extended resources backed by device classes, and rules that taint devices from
outside their slices, are not supported.
"""
