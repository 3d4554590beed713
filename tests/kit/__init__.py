"""What several suites of this repository share, and no plugin author needs: faulty API servers, real control planes,
certificates, devices, processes and recorded writes. Builders and laws are in `extender.testing`.
"""
