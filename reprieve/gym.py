"""The simulation as a Gymnasium environment, `reprieve.gym:reprieve/Scheduling-v0` by name. Needs the extra `gym`."""

from reprieve.lab.simulation.environment import Progress, SchedulingEnvironment, allocation

__all__ = ["Progress", "SchedulingEnvironment", "allocation"]
