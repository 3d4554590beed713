"""The extender verbs that kube-scheduler calls: filter, prioritize, preempt and bind.

`Verbs` answers for one cluster. Below it are plain functions over a `Cycle`; only `bind` writes. Bytes are decoded and
encoded elsewhere.

Upstream, the caller's side: pkg/scheduler/extender.go.
"""

from extender.verbs.filtering import FilterResult
from extender.verbs.verbs import VerbError, Verbs
