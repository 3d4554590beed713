"""Renders answers as HTML: one function a page."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from api.ui import wording
from api.ui.assets import assets
from api.ui.changes import BeforeAndAfter, NodeChange, before_and_after, changed_priorities
from api.ui.frame import Frame, pod_href, short_reason
from api.ui.node_drawing import Resource, node_drawing, pod_tip, quantity, usage
from api.ui.node_grid import ZoneGrid, reason_grids, zone_grids
from api.ui.node_plugin_picture import picture, refused_first
from api.ui.node_table import Order, heads, in_order
from api.ui.preemption_view import change_by_answer, change_by_record, preemption_view
from api.ui.priorities import Priorities
from api.ui.score_bars import score_bars
from api.ui.timeline import timeline
from api.ui.waterfall_table import waterfall_table
from api.ui.what_if_view import MAX_NODES, moves, node_changes
from extender.answers.cluster_map import ClusterMap, NodeOnMap
from extender.answers.phrases import noun, why_no_room
from extender.answers.types import Attempt, Explanation, Preemption, WhatIf
from extender.objects.resource_amounts import in_words

MAX_LISTED: Final = 200
"""The number of nodes in the table; others can be found by name."""

MANY_NODES: Final = 40
"""The number of nodes above which the page of a pod has a map."""
MAX_DRAWN: Final = 5
"""The number of preemptions in the history that are drawn."""

_AS_ON_THE_MAP: Final = Order()
_SIZES: Final = ((16, 142, 180), (48, 128, 150), (10**9, 92, 110))
"""(up to so many nodes, width of each, height of each)."""


_REFUSALS: Final = ("c1", "c0", "c3", "c4", "c7", "c6")
"""CSS classes of plugins that refuse; none is green, the colour of feasible nodes."""


@cache
def _environment() -> Environment:
    found = Environment(loader=PackageLoader("api.ui"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    words: Mapping[str, Callable[..., object]] = {
        "cores": wording.cores, "size": wording.size, "share": wording.share, "plural": wording.plural, "pod_words": wording.pod_words,
        "priority_words": wording.priority_words, "ago": wording.ago, "pod_href": pod_href, "pod_tip": pod_tip, "quantity": quantity,
        "breakable": wording.breakable, "short_reason": short_reason, "usage": usage, "asset": assets().path,
        "in_words": in_words, "noun": noun, "why_no_room": why_no_room,
    }  # fmt: skip
    found.globals.update(words)
    return found


def cluster_page(
    frame: Frame, shown: ClusterMap, by: Resource, attempts: Sequence[Attempt], preemptions: Sequence[Preemption], now: datetime
) -> str:
    """Returns the map: a drawing of each node while there are few, a grid when there are many; and the recent activity."""
    recent = timeline(attempts, preemptions, now) if attempts else None
    if not shown.has_pods:
        return _render("cluster.html", frame=frame, shown=shown, by=by, grids=zone_grids(shown.nodes, by), zones=(), recent=recent)
    zones: dict[str, list[tuple[NodeOnMap, str]]] = {}
    width, height = next((wide, tall) for most, wide, tall in _SIZES if len(shown.nodes) <= most)
    largest = max((usage(node, by)[1] for node in shown.nodes), default=0)
    for node in shown.nodes:
        tall = height * max(0.3, usage(node, by)[1] / largest) if largest else height
        zones.setdefault(node.zone, []).append((node, node_drawing(node, by, frame.priorities, width=width, height=round(tall))))
    return _render("cluster.html", frame=frame, shown=shown, by=by, grids=(), zones=tuple(zones.items()), recent=recent)


def nodes_page(frame: Frame, shown: ClusterMap, find: str, order: Order = _AS_ON_THE_MAP) -> str:
    """Returns the nodes as a table."""
    found = [node for node in shown.nodes if find.lower() in node.name.lower() or find.lower() in node.zone.lower()]
    return _render(
        "nodes.html",
        frame=frame,
        nodes=in_order(found, order)[:MAX_LISTED],
        num_found=len(found),
        find_node=find,
        sort=order.written,
        heads=heads(order, {"node": find, "find": frame.find}),
    )


def node_page(frame: Frame, node: NodeOnMap) -> str:
    """Returns one node with its pods."""
    priorities = _scale(frame, [pod.pod.priority for pod in node.pods])
    pictures = [(by, node_drawing(node, by, priorities, width=320, height=260)) for by in _RESOURCES]
    return _render("node.html", frame=frame, node=node, pictures=pictures, priorities=priorities)


def pod_page(frame: Frame, answer: Explanation, shown: ClusterMap, chosen: NodeOnMap | None, now: datetime) -> str:
    """Returns why a pod is where it is, or nowhere.

    Arguments:
        chosen: the node on which it would preempt, if there is one.
    """
    grids, legend = _where(answer, shown)
    drawn: list[BeforeAndAfter] = []
    if chosen is not None and answer.preemption is not None:
        cpu, memory = wording.requested(answer.requests)
        change = change_by_answer(chosen, answer.preemption, answer.pod, cpu, memory)
        drawn = _drawn([change], frame, _dominant(cpu, memory, chosen))
    return _render(
        "pod.html",
        frame=frame,
        answer=answer,
        now=now,
        waterfall=waterfall_table(answer.waterfall, answer.total_nodes) if answer.waterfall else None,
        picture=picture(answer.picture) if answer.picture is not None and answer.picture.nodes else None,
        grids=grids,
        grid_legend=legend,
        scores=score_bars(answer.scores),
        view=preemption_view(answer.preemption) if answer.preemption is not None else None,
        drawn=drawn,
        priorities=_scale(frame, [answer.pod.priority]),
    )


def decision_page(frame: Frame, made: Attempt, now: datetime) -> str:
    """Returns one attempt, as it was recorded."""
    before = made.waterfall[0].left + made.waterfall[0].refused if made.waterfall else 0
    return _render(
        "decision.html",
        frame=frame,
        made=made,
        now=now,
        waterfall=waterfall_table(made.waterfall, before) if made.waterfall else None,
        picture=picture(made.picture, first_only=True) if made.picture is not None else None,
        scores=score_bars(made.scores),
        view=preemption_view(made.preemption) if made.preemption is not None and made.preemption.node else None,
        priorities=_scale(frame, [made.pod.priority]),
    )


def history_page(
    frame: Frame,
    attempts: Sequence[Attempt],
    preemptions: Sequence[Preemption],
    nodes: Mapping[str, NodeOnMap],
    now: datetime,
) -> str:
    """Returns what was decided.

    Arguments:
        nodes: the nodes of preemptions that are to be drawn, with their pods.
    """
    drawn: dict[int, BeforeAndAfter] = {}
    for record in preemptions[:MAX_DRAWN]:
        change = change_by_record(nodes[record.node], record) if record.node in nodes else None
        if change is not None:
            (drawn[record.id],) = _drawn([change], frame, _dominant(change.arrives[0].cpu, change.arrives[0].memory, change.node))
    return _render(
        "history.html",
        frame=frame,
        attempts=attempts,
        preemptions=[(record, preemption_view(record)) for record in preemptions],
        drawn=drawn,
        picture=timeline(attempts, preemptions, now),
        now=now,
        priorities=frame.priorities,
    )


def what_if_page(frame: Frame) -> str:
    """Returns the form for what-ifs."""
    return _render("what_if.html", frame=frame)


def what_if_part(answer: WhatIf, shown: ClusterMap, nodes: Mapping[str, NodeOnMap], changed: Sequence[str], by: Resource) -> str:
    """Returns the answer to a what-if, which is put below the form.

    Arguments:
        nodes: the changed nodes that are to be drawn, with their pods.
        changed: the names of all changed nodes.
    """
    changes = node_changes(answer, nodes)
    priorities = changed_priorities(changes, shown.priorities)
    drawn = [before_and_after(change, by, priorities) for change in changes[:MAX_NODES]]
    return _render(
        "what_if_result.html",
        answer=answer,
        drawn=drawn,
        num_changed=len(changed),
        grids=zone_grids(shown.nodes, by, changed),
        moves=moves(answer.evictions),
        places={node.name: place for place, node in enumerate(shown.nodes)},
        priorities=priorities,
        by=by,
    )


def problem_page(title: str, text: str, *, asks_for_token: bool = False, signed_in: bool = False) -> str:
    """Returns why something cannot be shown, and what to do about it."""
    return _render("problem.html", title=title, text=text, asks_for_token=asks_for_token, signed_in=signed_in)


_RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "memory")


def _where(answer: Explanation, shown: ClusterMap) -> tuple[tuple[ZoneGrid, ...], list[tuple[str, str, int]]]:
    """A map of the first plugin that refuses each node, where there are many nodes; and (plugin, CSS class, nodes) of its legend."""
    if answer.picture is None or len(shown.nodes) <= MANY_NODES:
        return (), []
    refused = refused_first(answer.picture)
    legend = [(plugin, _REFUSALS[place % len(_REFUSALS)], len(names)) for place, (plugin, names) in enumerate(refused)]
    css = {name: colour for (_, colour, _), (_, names) in zip(legend, refused, strict=True) for name in names}
    nearest = [near.node for near in answer.nearest]
    return reason_grids(shown.nodes, css, [*nearest, answer.preemption.node if answer.preemption is not None else ""]), legend


def _drawn(changes: Sequence[NodeChange], frame: Frame, by: Resource) -> list[BeforeAndAfter]:
    priorities = _scale(frame, [pod.pod.priority for change in changes for pod in change.arrives])
    return [before_and_after(change, by, priorities) for change in changes]


def _scale(frame: Frame, further: Sequence[int]) -> Priorities:
    return Priorities.of([*frame.priorities.starts, *further])


def _dominant(cpu: int, memory: int, node: NodeOnMap) -> Resource:
    """The resource of which the pod requests the larger share."""
    return "memory" if node.cpu and node.memory and memory / node.memory > cpu / node.cpu else "cpu"


def _render(template: str, **values: object) -> str:
    return _environment().get_template(template).render(values)
