"""Node x plugin: what each Filter by itself says of every node, each distinct answer written once."""

import numpy as np

from extender.answers.types import NodePicture, PluginVerdict
from extender.evaluation.evaluate import Evaluation
from extender.framework import Code, Verdicts
from extender.snapshot.axes import Index


def picture(evaluation: Evaluation) -> NodePicture:
    """All nodes in visiting order, the Filters that have anything to say of the pod in the profile's. Empty if none was asked."""
    by_plugin = evaluation.by_plugin or {}
    names = tuple(node.name for node in evaluation.snapshot.nodes.objects)
    if not by_plugin:
        return NodePicture(plugins=(), nodes=names, verdicts=(), cells=((),) * len(names))
    distinct: list[PluginVerdict] = []
    columns: list[Index] = []
    for plugin, verdicts in by_plugin.items():
        first, which = _distinct(verdicts)
        meaning = np.full(len(first), -1)
        for place, row in enumerate(first.tolist()):
            code = Code(int(verdicts.codes[row]))
            if code is not Code.SUCCESS:
                meaning[place] = len(distinct)
                distinct.append(PluginVerdict(plugin=plugin, code=str(code), reasons=tuple(verdicts.reasons_of(row))))
        columns.append(meaning[which])
    cells = tuple(zip(*(column.tolist() for column in columns), strict=True))
    return NodePicture(plugins=tuple(by_plugin), nodes=names, verdicts=tuple(distinct), cells=cells)


def _distinct(verdicts: Verdicts) -> tuple[Index, Index]:
    """(D,) a row for each distinct answer, and (R,) which of them a row got."""
    which = verdicts.codes.astype(np.int64)
    first: Index = np.zeros(0, np.intp)
    for held in (None, *(mask for _, mask in verdicts.reasons)):
        # One reason after the other, numbered anew each time, so that any number of them fits.
        joined = which if held is None else 2 * which + held
        _, first, which = np.unique(joined, return_index=True, return_inverse=True)
    return first, which
