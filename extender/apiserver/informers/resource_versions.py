"""Which of two resource versions is the older one.

They can be compared within one resource only, and only as numbers: a version that is no number is older than nothing.

Upstream: apimachinery/pkg/util/resourceversion/resourceversion.go, CompareResourceVersion (v1.36.2).
"""


def is_older(version: str, than: str) -> bool:
    """True if `version` is certainly older than `than`; False for equal ones and for those that cannot be compared."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)
