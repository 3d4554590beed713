"""What pages and commands show."""

import json

import msgspec

from api.cli.doctor import protocol_schema
from api.ui import pages
from api.ui.what_if_view import changed_nodes
from extender.answers.overviews import ClusterMap
from extender.values.config.configuration import Extender
from extender.values.golang.times import Duration
from reprieve.lab.doctor.every_verb import is_valid
from reprieve.lab.doctor.examined_service import ExaminedService, Reply
from tests.api.ui.samples import WHAT_IF, node as drawn
from tests.api.ui.test_pages import around
from tests.limits.rows import RECORDED, Command, Filled, Page


def drawn_nodes(number: int) -> int:
    """Returns how many nodes are drawn of so many that get a pod in a what-if."""
    nodes = {f"m{index}": drawn(name=f"m{index}") for index in range(number)}
    placements = tuple(msgspec.structs.replace(WHAT_IF.placements[0], node=name, evicts=()) for name in nodes)
    answer = msgspec.structs.replace(WHAT_IF, placements=placements, evictions=())
    frame = around(ClusterMap(generation=1, nodes=tuple(nodes.values()), has_pods=False))
    return pages.what_if_part(frame, answer, nodes, changed_nodes(answer), "cpu").count('<figure class="change">')


def repeated(length: int) -> str:
    """Returns the end of what `doctor` says of an answer against which the schema says so much."""
    extender = ExaminedService(Extender(url_prefix="http://e", http_timeout=Duration.of(1)), protocol_schema)

    def detail(names: str) -> str:
        reply = Reply(200, json.dumps({"NodeNames": names}).encode(), 0.0, closes=False)
        return is_valid(extender, "ExtenderFilterResult", reply).detail

    return detail("x" * (1 + length - len(detail("x"))))[-3:]


PAGES: dict[str, Filled | Page | Command] = {
    "PAGE_PODS": Page(42, "/ui/pods", r'href="/ui/pods/\w'),
    "PAGE_FOUND": Page(7, "/ui/find?q=web-", r'href="/ui/pods/shop/web-'),
    "PAGE_SUGGESTED": Page(7, "/ui/found?q=web-", r'href="/ui/pods/shop/web-'),
    "PAGE_ATTEMPTS": Page(RECORDED, "/", r'<rect class="unplaced"'),
    "PAGE_PREEMPTIONS": Page(RECORDED, "/", r'<path class="flag[^>]+ 2h'),
    "PAGE_DRAWN_PREEMPTIONS": Page(RECORDED, "/ui/history", r'<figure class="change">'),
    "PAGE_DIFFERENCES": Page(RECORDED, "/ui/agreement", r'<tr><td class="when"'),
    "PAGE_CHANGED_NODES": Filled(drawn_nodes, at=12, above=12),
    "PREEMPTIONS_TOLD": Command(RECORDED, ("who-preempted", "default/low"), r"preempted on node-a2"),
    "PREEMPTIONS_SEARCHED": Command(RECORDED, ("who-preempted",), r"default/low"),
    "PODS_LISTED": Command(7, ("why", "-l", "app=web", "-n", "shop", "-o", "wide"), r"(?m)^shop/web-\d .*Z"),
    "SCHEMA_ERROR_CHARACTERS": Filled(repeated, at="ord", above="..."),
}
