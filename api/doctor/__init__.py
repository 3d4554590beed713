"""Examining an extender from the outside, as kube-scheduler would use it: anybody's extender, in any language.

Not here: anything that knows who answers. What is wrong is said by what kube-scheduler 1.36 would make of the answer.
"""
