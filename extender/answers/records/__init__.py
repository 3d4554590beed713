"""The recent attempts and preemptions, kept within bounds.

The scheduling cycles report to a `reporter.Reporter` what they do; `records.Records` is one that keeps it. Reporting
never changes a decision and costs next to nothing: texts are made when a record is read.
"""
