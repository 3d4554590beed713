"""Image references, as far as defaults depend on them.

Upstream: pkg/util/parsers/parsers.go, ParseImageName; github.com/distribution/reference (v1.36.2).
"""

import re
from typing import Final

_COMPONENT: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST: Final = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?))*|\[[a-fA-F0-9:]+\]"
_REFERENCE: Final = re.compile(
    rf"(?:(?:{_HOST})(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*(?::(?P<tag>[\w][\w.-]{{0,127}}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)


def pull_policy(image: str) -> str:
    """What imagePullPolicy defaults to: `Always` for the tag `latest`, whether written or implied, else `IfNotPresent`."""
    reference = _REFERENCE.fullmatch(image)
    if reference is None:
        return "IfNotPresent"
    implied = reference["tag"] is None and reference["digest"] is None
    return "Always" if implied or reference["tag"] == "latest" else "IfNotPresent"
