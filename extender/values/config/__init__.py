"""KubeSchedulerConfiguration as frozen values: read strictly, defaulted, validated and written as upstream does.

No plugin is known here by more than its name, the extension points it implements and the type of its arguments; who
runs where in the end is worked out by `extender.engine.runtime.profiles`.
"""
