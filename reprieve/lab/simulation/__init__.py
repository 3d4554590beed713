"""Plays workloads: pods arrive at a simulated cluster in virtual time, and the real scheduler places them.

The scheduler is that of `assembly.scheduling`, with its queue, cache and plugins. Only what surrounds it is simulated:
the API server with its controllers (`simulated_cluster`) and the clock. No decision is made in here, and nothing is
written to a cluster.
"""

from reprieve.lab.simulation.export import ExportError, PlayExport, exported_to
from reprieve.lab.simulation.playing import Advance, play
from reprieve.lab.simulation.plots import Series, plots_of
from reprieve.lab.simulation.replaying import ReplayReport, replay
from reprieve.lab.simulation.report import Assertion, ComparedFigure, RunComparison, Sample, SimulationReport, compared
from reprieve.lab.simulation.sweeping import read_workloads, sweep
from reprieve.lab.simulation.workload import Workload, WorkloadError
