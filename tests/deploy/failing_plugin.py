"""A plugin that fails, or takes its time, for pods that say so, as a distribution of its own."""

import time
from pathlib import Path

from extender.engine import framework as fwk

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: LEASE, resourceNamespace: kube-system}
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: FailingPlugin
"""
SECONDS = {"slow": 1.2, "very-slow": 3}
"""Longer than what the alerts about attempts and about verbs take for slow."""


class FailingPlugin(fwk.FilterPlugin):
    """Does to a pod what its label `behaviour` says: fails, is slow the first time, or accepts all nodes."""

    def __init__(self, arguments: object = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._seen: set[str] = set()

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        behaviour = pod.labels.get("behaviour")
        if behaviour == "fail":
            raise ValueError("it is told to fail")
        if behaviour in SECONDS and pod.key not in self._seen:
            self._seen.add(pod.key)
            time.sleep(SECONDS[behaviour])
        return fwk.accept(len(rows))


def install(folder: Path) -> None:
    """Makes the distribution, for a process with the folder on its path."""
    about = folder / "failing-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: failing\nVersion: 0\n")
    (about / "entry_points.txt").write_text(f"[extender.plugins]\nFailingPlugin = {__name__}:FailingPlugin\n")
