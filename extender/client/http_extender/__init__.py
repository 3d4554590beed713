"""The HTTP extenders of our configuration, which we call.

Cycles are in `extender.engine.scheduler`, which calls the extenders in upstream's order.

Upstream: pkg/scheduler/extender.go, HTTPExtender.
"""

from extender.client.http_extender.calling import without_password
from extender.client.http_extender.checks import check_extenders, warnings_of
from extender.client.http_extender.http_extender import (
    ExtenderCalls,
    HTTPExtender,
    Through,
    Transports,
    make_extenders,
    no_transport,
    reads_whole,
)
