from extender import framework as fwk


class GpuGeneration(fwk.FilterPlugin, fwk.ScorePlugin):
    """Pods that name a minimum GPU generation land on new enough nodes, newest first."""

    def filter(self, state, pod, rows):
        wanted = int(pod.annotations.get("example.com/min-gpu-generation", 0))
        too_old = rows.label_number("example.com/gpu-generation") < wanted
        return fwk.reject(too_old, "node(s) had an older GPU generation", unresolvable=True)

    def score(self, state, pod, rows):
        return rows.label_number("example.com/gpu-generation")
