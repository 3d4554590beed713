"""What was decided, kept for a while: attempts and preemptions, within bounds.

The scheduling cycles tell a `reporter.Reporter` what they do; `records.Records` is one that remembers. Reporting never changes a decision
and costs next to nothing: nothing is put into words before somebody asks.
"""
