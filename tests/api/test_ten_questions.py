"""docs/ten-questions.md: a question takes one command, which another test types, or at most three clicks, which are
made here.
"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.kit.service import Service, serving
from tests.kit.waiting import until_at_rest

PAGE = (Path(__file__).parents[2] / "docs" / "ten-questions.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| \d+\. ", line)
]
CLICKED = [(question, clicks.split(" → ")) for question, _, clicks in ROWS if clicks]
ANSWERS = {
    "1": ["1 pending pod", "Insufficient nvidia.com/gpu"],
    "2": ["NodeResourcesFit", "train-3"],
    "3": ["shop/web-6 preempted 1 pod"],
    "6": ["Why this node", "NodeResourcesFit", "weighted"],
    "10": ["Decisions", "Unschedulable", "batch/train-3"],
}
"""What the last page says. What a form answers, tests of the browser look at."""


class Links(HTMLParser):
    """The links of a page by their texts, its buttons and fields, and all that it says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: dict[str, str] = {}
        self.fields: set[str] = set()
        self.said = ""
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "a" and attributes.get("href"):
            self._open = [str(attributes["href"]), "", attributes.get("aria-label") or ""]
        if attributes.get("name"):
            self.fields.add(str(attributes["name"]))

    def handle_data(self, data: str) -> None:
        self.said += data
        if self._open:
            self._open[1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._open:
            href, text, label = self._open
            self.links.setdefault(" ".join(text.split()) or label, href)
            self._open = []


@pytest.fixture(scope="module")
def example() -> Iterator[Service]:
    with serving() as service:
        until_at_rest(f"http://127.0.0.1:{service.port}")
        yield service


def test_page_lists_ten_questions_with_a_command_each() -> None:
    assert [int(row[0].split(".")[0]) for row in ROWS] == list(range(1, 11))
    assert all(re.fullmatch(r"`reprieve .*`", row[1]) for row in ROWS)
    assert all(f"$ {row[1].strip('`')}\n" in PAGE for row in ROWS)


@pytest.mark.parametrize(("question", "clicks"), CLICKED, ids=[question for question, _ in CLICKED])
def test_the_page_answers_in_three_clicks(example: Service, question: str, clicks: list[str]) -> None:
    first, *later_clicks = clicks
    page = Links(example.client.get("/").text)
    for click in later_clicks:
        if click in ("Try it", "How many more fit?"):
            assert {"manifest", "drain", "like", "count", "pending"} <= page.fields and click in page.said
            continue
        [target] = {href for text, href in page.links.items() if click in (text, text.split("/")[-1])}
        page = Links(example.client.get(target).text)

    assert first == "Cluster"
    assert len(later_clicks) <= 3
    text = " ".join(page.said.split())
    for words in ANSWERS.get(question.split(".", maxsplit=1)[0], ["Try it"]):
        assert words in text
