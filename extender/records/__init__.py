"""What was decided, kept for a while: attempts and preemptions, within bounds.

The cycles tell a `Reporter` what they do. Reporting never changes a decision, and costs next to nothing: what people ask for is worked out
when they ask.
"""
