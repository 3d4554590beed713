"""What was decided, kept for a while: attempts and preemptions, within bounds.

The cycles tell a `Reporter` what they do. Reporting never changes a decision, and costs next to nothing: what people ask for is worked out
when they ask.
"""

from extender.records.records import Records
from extender.records.reporter import NO_REPORTER, Guarded, Reporter
from extender.records.shelf import Limits

__all__ = ["NO_REPORTER", "Guarded", "Limits", "Records", "Reporter"]
