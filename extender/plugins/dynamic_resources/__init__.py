"""DynamicResources: claims for devices, and which devices they get.

`plugin` has the extension points; `pod_claims` says which claims are the pod's; `allocation` searches `pools` for what `requests` wish,
minding `constraints`, `counters` and `capacities`; `cel` decides which devices a selector matches.

No API writes here. Extended resources that a device class stands for, and rules that taint devices from outside their slices, are not
known here.
"""
