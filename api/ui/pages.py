"""Renders answers as HTML: one function a page."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from shlex import quote as quoted
from typing import Final, get_args

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from api.ui import wording
from api.ui.answer_drawings import picture, refused_first, score_bars, waterfall_table
from api.ui.changes import BeforeAndAfter, before_and_after, change_by_answer, change_by_record, preemption_view
from api.ui.frame import Frame, address, assets, found_href, node_href, pod_href, pods_href, reason_of, short_reason
from api.ui.node_drawing import node_drawing
from api.ui.node_grid import ZoneGrid, group_grids, reason_grids, zone_grids
from api.ui.node_table import (
    DEFAULT,
    SORTS,
    GroupOfNodes,
    NodeSelection,
    chosen,
    columns_for,
    group_keys,
    groups_of,
    in_order,
)
from api.ui.resources import ALWAYS, Resource, most_lacking, quantity, resource_words, resources_of, tabled, usage
from api.ui.scheduler_figures import SchedulerFigures
from api.ui.timeline import OUTCOMES, RANGES, history_href, past_timeline, timeline
from api.ui.what_if_view import SAMPLE, evictions_alike, fix_href, moves, node_changes, placements_alike
from extender import __version__
from extender.answers.catalogue import HistoryQuestion, PodsQuestion
from extender.answers.overviews import FoundNames, NodeOnMap, Past, PodList, PodState
from extender.answers.phrases import happened, its_scheduler, noun, why_no_room
from extender.answers.stories import Preemption
from extender.answers.types import Attempt, Capacity, Explanation, WhatIf
from extender.values import limits
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import in_words
from reprieve.lab.agreement import Agreement
from reprieve.lab.plan.picture import drawn
from reprieve.lab.plan.plan_answer import PlanAnswer, PlanRequest
from reprieve.sources.manifest_text import manifest_of, written

MANY_NODES: Final = 40
"""The number of nodes above which the page of a pod has a map."""

_SIZES: Final = ((16, 142, 180), (48, 128, 150), (10**9, 92, 110))
"""(up to so many nodes, width of each, height of each)."""


_REFUSALS: Final = ("c1", "c0", "c3", "c4", "c7", "c6")
"""CSS classes of plugins that refuse; none is green, the colour of feasible nodes."""


@cache
def _environment() -> Environment:
    environment = wording.environment()
    words: Mapping[str, Callable[..., object]] = {
        "cores": wording.cores, "size": wording.size, "share": wording.share, "plural": wording.plural,
        "pod_words": wording.pod_words,
        "ago": wording.ago, "seconds_short": wording.seconds_short,
        "happened": happened, "ago_at": _ago_at,
        "pod_href": pod_href, "pods_href": pods_href, "node_href": node_href,
        "found_href": found_href, "history_href": history_href, "address": address, "reason_of": reason_of,
        "shortened": wording.shortened, "short_taint": wording.short_taint,
        "marked": wording.marked, "quantity": quantity,
        "resource_words": resource_words,
        "breakable": wording.breakable, "short_reason": short_reason, "usage": usage, "asset": assets().path,
        "in_words": in_words, "its_scheduler": its_scheduler,
        "percent_of": wording.percent_of, "noun": noun, "why_no_room": why_no_room,
        "yaml_of": lambda obj: written([obj]).rstrip(),
    }  # fmt: skip
    environment.globals.update(words, version=__version__)
    return environment


def _ago_at(now: datetime | None) -> Callable[[str | None], str]:
    """Returns what says how long ago a time was; without a now, which time it was."""
    return lambda text: "" if not text else text if now is None else f"{wording.ago(text, now)} ago"


def cluster_page(
    frame: Frame,
    requested_selection: NodeSelection,
    attempts: Sequence[Attempt],
    preemptions: Sequence[Preemption],
    kubectl: str = "",
) -> str:
    """Returns what is wrong, what happened last, and the map: a drawing of each node while there are few, a grid when
    there are many.

    Arguments:
        kubectl: the address at which kubectl reaches a cluster of Reprieve's own.
    """
    cluster_map, selection = frame.shown, _resolved(requested_selection, frame)
    groups = groups_of(cluster_map.nodes, selection)
    names = None if not selection.words else {node.name for node in chosen(cluster_map.nodes, selection.words)}
    drawn = [] if not cluster_map.has_pods else [(group, _drawings(group, selection.by, frame)) for group in groups]
    return _render(
        "cluster.html",
        frame,
        shown=cluster_map,
        selection=selection,
        resources=resources_of(cluster_map.nodes),
        keys=group_keys(cluster_map.nodes),
        sorts=SORTS,
        names=names,
        drawn=drawn,
        grids=() if cluster_map.has_pods else group_grids(groups, selection.by, names),
        conditions=_conditions(cluster_map.nodes),
        preemptions=preemptions[: limits.PAGE_RECENT_PREEMPTIONS],
        recent=timeline(attempts, preemptions, frame.now) if attempts else None,
        kubectl=kubectl,
    )


def cells(frame: Frame, requested_selection: NodeSelection) -> bytes:
    """Returns (name, words) of each node as JSON, in the order of the grids of the same selection."""
    selection = _resolved(requested_selection, frame)
    nodes = (node for group in groups_of(frame.shown.nodes, selection) for node in group.nodes)
    return msgspec.json.encode([(node.name, _cell_words(node, selection.by)) for node in nodes])


def _cell_words(node: NodeOnMap, selected_resource: Resource) -> str:
    lines = [node.name]
    for resource in dict.fromkeys((selected_resource, *ALWAYS)):
        requested, whole = usage(node, resource)
        lines.append(
            f"{wording.share(requested, whole)} % of "
            f"{quantity(whole, resource)}{'' if resource == 'cpu' else f' {resource_words(resource)}'}"
        )
    return "\n".join((*lines, *node.conditions, *(["cordoned"] if node.cordoned else []), *node.taints))


def _resolved(selection: NodeSelection, frame: Frame) -> NodeSelection:
    """Returns the selection with a resource that there is."""
    is_there = selection.by in resources_of(frame.shown.nodes)
    return selection if is_there else replace(selection, by=most_lacking(frame.problems.lacking, frame.shown.nodes))


def _drawings(group: GroupOfNodes, resource: Resource, frame: Frame) -> list[tuple[NodeOnMap, Markup]]:
    width, height = next((wide, tall) for max_nodes, wide, tall in _SIZES if len(frame.shown.nodes) <= max_nodes)
    largest = max(usage(node, resource)[1] for node in frame.shown.nodes)
    drawings = []
    for node in group.nodes:
        tall = height * max(0.3, usage(node, resource)[1] / largest) if largest else height
        drawings.append((node, node_drawing(node, resource, frame.priorities, width=width, height=round(tall))))
    return drawings


def _conditions(nodes: Sequence[NodeOnMap]) -> list[tuple[str, int]]:
    """Returns what is wrong with nodes, with the number of them; most first."""
    counts = Counter(condition for node in nodes for condition in node.conditions)
    counts["cordoned"] = sum(node.cordoned for node in nodes)
    return (+counts).most_common()


def nodes_page(frame: Frame, words: str, sort: str, first: int = 0) -> str:
    """Returns the nodes as a table, from the place `first` on. OrderError if there is no such order."""
    nodes = frame.shown.nodes
    ordered_nodes = in_order(chosen(nodes, words), sort, columns_for(resources_of(nodes)))
    resources = tabled(nodes, frame.problems.lacking, sort)
    return _render(
        "nodes.html",
        frame,
        nodes=ordered_nodes[first : first + limits.PAGE_NODES],
        first=first,
        steps=[("Previous", max(0, first - limits.PAGE_NODES))] * (first > 0)
        + [("Next", first + limits.PAGE_NODES)] * (first + limits.PAGE_NODES < len(ordered_nodes)),
        num_found=len(ordered_nodes),
        words=words,
        sort=sort or DEFAULT,
        resources=resources,
        columns=columns_for(resources),
    )


def node_page(frame: Frame, node: NodeOnMap) -> str:
    resources = resources_of((node,))
    drawn = [resource for resource in resources if resource != "pods"]
    return _render(
        "node.html",
        frame,
        node=node,
        pictures=[
            (resource, node_drawing(node, resource, frame.priorities, width=320, height=260)) for resource in drawn
        ],
        resources=resources[len(ALWAYS) :],
    )


def pods_page(frame: Frame, pod_list: PodList, question: PodsQuestion) -> str:
    return _render(
        "pods.html",
        frame,
        found=pod_list,
        asked=question,
        states=get_args(PodState),
        waiting={place.pod.uid: place for place in frame.queue.items},
    )


def find_page(frame: Frame, matches: FoundNames, query: str) -> str:
    return _render("find.html", frame, found=matches, query=query)


def find_part(matches: FoundNames, query: str) -> str:
    """Returns what was found by name, as a list for the palette."""
    return _render("found.html", found=matches, query=query)


def pod_page(
    frame: Frame,
    answer: Explanation,
    chosen: NodeOnMap | None,
    pod: Pod | None = None,
) -> str:
    """Returns why a pod is where it is, or nowhere.

    Arguments:
        chosen: the node on which it would preempt, if there is one.
        pod: the pod itself, if it is there.
    """
    grids, legend = _where(answer, frame.shown.nodes)
    drawn: list[BeforeAndAfter] = []
    if chosen is not None and answer.preemption is not None:
        cpu, memory = wording.requested(answer.requests)
        change = change_by_answer(chosen, answer.preemption, answer.pod, cpu, memory)
        drawn = [before_and_after(change, _dominant(cpu, memory, chosen), frame.priorities)]
    return _render(
        "pod.html",
        frame,
        answer=answer,
        waterfall=waterfall_table(answer.waterfall, answer.total_nodes) if answer.waterfall else None,
        picture=picture(answer.picture) if answer.picture is not None and answer.picture.nodes else None,
        grids=grids,
        grid_legend=legend,
        scores=score_bars(answer.scores),
        view=preemption_view(answer.preemption) if answer.preemption is not None else None,
        drawn=drawn,
        tried=[fix_href(fix) for fix in answer.fixes],
        manifest="" if pod is None else manifest_of(pod),
    )


def story_file(answer: Explanation, now: datetime) -> str:
    """Returns why a pod is where it is, or nowhere, and what happened to it, as one file without links or scripts."""
    whole = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(answer, picture=None))).decode()
    return _render("story.html", answer=answer, now=now, whole=whole)


def decision_page(frame: Frame, attempt: Attempt) -> str:
    before = attempt.waterfall[0].left + attempt.waterfall[0].refused if attempt.waterfall else 0
    return _render(
        "decision.html",
        frame,
        made=attempt,
        waterfall=waterfall_table(attempt.waterfall, before) if attempt.waterfall else None,
        picture=picture(attempt.picture, first_only=True) if attempt.picture is not None else None,
        scores=score_bars(attempt.scores),
        view=preemption_view(attempt.preemption)
        if attempt.preemption is not None and attempt.preemption.node
        else None,
    )


def history_page(frame: Frame, past: Past, question: HistoryQuestion, nodes: Mapping[str, NodeOnMap]) -> str:
    """Returns what was decided; `nodes` are those of preemptions that are to be drawn, with their pods."""
    drawn: dict[int, BeforeAndAfter] = {}
    for record in past.preemptions[: limits.PAGE_DRAWN_PREEMPTIONS]:
        change = change_by_record(nodes[record.node], record) if record.node in nodes else None
        if change is not None:
            resource = _dominant(change.arrives[0].cpu, change.arrives[0].memory, change.node)
            drawn[record.id] = before_and_after(change, resource, frame.priorities)
    return _render(
        "history.html",
        frame,
        past=past,
        asked=question,
        ranges=RANGES,
        outcomes=OUTCOMES,
        preemptions=[(record, preemption_view(record)) for record in past.preemptions],
        drawn=drawn,
        picture=past_timeline(past),
    )


def agreement_page(frame: Frame, answer: Agreement) -> str:
    return _render("agreement.html", frame, answer=answer)


def scheduler_page(frame: Frame, figures: SchedulerFigures) -> str:
    return _render("scheduler.html", frame, figures=figures)


def what_if_page(frame: Frame) -> str:
    return _render("what_if.html", frame, sample=SAMPLE)


def what_if_part(
    frame: Frame,
    answer: WhatIf,
    nodes: Mapping[str, NodeOnMap],
    changed: Sequence[str],
    resource: Resource,
    command: str = "",
) -> str:
    """Returns the answer to a what-if, which is put below the form.

    Arguments:
        nodes: the changed nodes that are to be drawn, with their pods.
        changed: the names of all changed nodes.
        command: what asks the same.
    """
    changes = node_changes(answer, nodes)[: limits.PAGE_CHANGED_NODES]
    return _render(
        "what_if_result.html",
        frame,
        answer=answer,
        placements=placements_alike(answer.placements),
        evictions=evictions_alike(answer.evictions),
        command=command,
        drawn=[before_and_after(change, resource, frame.priorities) for change in changes],
        num_changed=len(changed),
        grids=zone_grids(frame.shown.nodes, resource, changed),
        moves=moves(answer.evictions),
        places={node.name: place for place, node in enumerate(frame.shown.nodes)},
    )


def capacity_part(answer: Capacity, manifest: str) -> str:
    """Returns how many more of the pasted pods fit, which is put below the form."""
    command = f"reprieve fits -f - <<'END'\n{manifest.rstrip()}\nEND"
    return _render("capacity.html", answer=answer, command=command, shown=answer.by_node[: limits.PAGE_NODES])


def plan_part(answer: PlanAnswer, request: PlanRequest) -> str:
    """Returns the moves after which nodes are free, which is put below the form."""
    command = f"reprieve plan --free-nodes {request.free_nodes}{f' --of {quoted(request.of)}' if request.of else ''}"
    drawing, max_rows = Markup(drawn(answer)), limits.PAGE_NODES  # noqa: S704 - the drawing escapes what it is given
    first_moves, nodes_not_freed = answer.moves[:max_rows], answer.kept[:max_rows]
    return _render(
        "plan.html", answer=answer, command=command, picture=drawing, moves=first_moves, kept=nodes_not_freed
    )


def help_page(frame: Frame) -> str:
    return _render("help.html", frame)


def problem_page(
    title: str,
    text: str,
    frame: Frame | None = None,
    *,
    asks_for_token: bool = False,
    signed_in: bool = False,
    reloads: bool = False,
) -> str:
    """Returns why something cannot be shown, and what to do; with `reloads`, the page reloads until it can be shown."""
    return _render(
        "problem.html",
        frame,
        title=title,
        text=text,
        asks_for_token=asks_for_token,
        signed_in=signed_in,
        again=reloads,
    )


def _where(answer: Explanation, nodes: Sequence[NodeOnMap]) -> tuple[tuple[ZoneGrid, ...], list[tuple[str, str, int]]]:
    """Of many nodes, a map of the plugins that refuse them first, and its legend: (plugin, CSS class, nodes)."""
    if answer.picture is None or len(nodes) <= MANY_NODES:
        return (), []
    refused = refused_first(answer.picture)
    legend = [(plugin, _REFUSALS[place % len(_REFUSALS)], len(names)) for place, (plugin, names) in enumerate(refused)]
    css = {name: colour for (_, colour, _), (_, names) in zip(legend, refused, strict=True) for name in names}
    nearest = [near.node for near in answer.nearest]
    on = "" if answer.preemption is None else answer.preemption.node
    return reason_grids(nodes, css, [*nearest, on]), legend


def _dominant(cpu: int, memory: int, node: NodeOnMap) -> Resource:
    """The resource of which the pod requests the larger share."""
    return "memory" if node.cpu and node.memory and memory / node.memory > cpu / node.cpu else "cpu"


def _render(template: str, frame: Frame | None = None, **values: object) -> str:
    of_frame = {} if frame is None else {"now": frame.now, "priorities": frame.priorities}
    page = _environment().get_template(template)
    context = page.new_context({"frame": frame, **of_frame, **values})
    text = "".join(page.root_render_func(context))
    # Macros and their context refer to each other: without its values, which may be thousands, few objects wait for the
    # collector.
    context.parent.clear()
    return text
