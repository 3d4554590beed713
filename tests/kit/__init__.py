"""What several suites of this repository share, and no plugin author needs, such as faulty API servers, certificates and
recorded writes. Builders and laws are in `extender.testing`.
"""
