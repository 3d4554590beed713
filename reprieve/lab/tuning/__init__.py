"""Finds the configuration with which kube-scheduler comes nearest to a goal, for one workload.

No decision is made in here: candidates are played as `reprieve.lab.simulation` plays them.
"""

from reprieve.lab.tuning.front import picture
from reprieve.lab.tuning.search import Goal
from reprieve.lab.tuning.tuning import TuneReport, tune
