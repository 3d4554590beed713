"""What nodes lack of what a pod demands of them: taints, labels, host ports, and resources."""

from collections.abc import Iterator
from typing import Final

from extender.answers.explain.findings import Asked, Finding
from extender.answers.phrases import all_of
from extender.engine.plugins.taints import prospect_of, taint_in_words
from extender.values.objects.node import Taint
from extender.values.objects.tolerations import find_untolerated_taint, tolerations_of

_PROSPECTS: Final = {
    "": "",
    "soon usable": ", until its agent is ready",
    "going": ", because it is about to be removed",
}


def taint_facts(asked: Asked) -> Iterator[Finding]:
    """Yields the taints of nodes near by that the pod does not tolerate, and what becomes of such nodes."""
    tolerations = tolerations_of(asked.pod)
    for node in asked.nearest:
        taints: list[Taint] = [each for each in node.spec.taints if find_untolerated_taint([each], tolerations)]
        if taints:
            prospect = max(map(prospect_of, taints), key=["", "soon usable", "going"].index)
            yield Finding(f"tainted {all_of(map(taint_in_words, taints))}{_PROSPECTS[prospect]}", node.name)
