from reprieve import plugin as fwk


class GpuGeneration(fwk.FilterPlugin, fwk.ScorePlugin, fwk.AdvicePlugin):
    """Pods that name a minimum GPU generation land on new enough nodes, newest first."""

    def filter(self, state, pod, rows):
        wanted = int(pod.annotations.get("example.com/min-gpu-generation", 0))
        too_old = rows.label_number("example.com/gpu-generation") < wanted
        return fwk.reject(too_old, "node(s) had an older GPU generation", unresolvable=True)

    def score(self, state, pod, rows):
        return rows.label_number("example.com/gpu-generation")

    def suggest(self, pod, rows):
        newest = max(rows.label_number("example.com/gpu-generation"), default=0)
        annotations = {**pod.annotations, "example.com/min-gpu-generation": str(newest)}
        changed = fwk.replaced(pod, metadata=fwk.replaced(pod.metadata, annotations=annotations))
        return [fwk.Suggestion("other", f"accept GPUs of generation {newest}", changed)]
