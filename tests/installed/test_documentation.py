"""The documentation: it builds without a warning, no link leads nowhere, what is generated is up to date, and its
commands work as written.

A block marked `console` is run, in an empty environment: every command has to succeed, and print what the page shows
(`...` stands for anything). A block marked `sh` needs a real cluster; its commands have to be ones that there are.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import typer
import yaml

from api.cli import SUBCOMMANDS, app
from tests.installed.environment import ROOT, Environment, installed_into, link_distribution, link_with_requirements
from tests.installed.journey import Journey
from tests.kit.ports import free_port
from tests.kit.stand_in_kube_scheduler import stand_in
from tests.kit.waiting import DEADLINE, until, until_at_rest
from tools.generate_reference import FOLDER, PAGES

DOCS = ROOT / "docs"
EVERY_PAGE = sorted(path for path in DOCS.rglob("*.md"))

README = "README.md"
DOORS = [README, "docs/ten-questions.md", "docs/tutorial.md", "docs/how-to/migrate.md"]
"""What a stranger reads first; docs/index.md is the README. `make release-check` runs these commands with the packages
that it built.
"""
PLAYED = [
    *DOORS,
    *(
        f"docs/{name}.md"
        for name in (
            "gym",
            "how-to/beside-kube-scheduler",
            "how-to/free-nodes",
            "how-to/machines",
            "how-to/many-processes",
            "how-to/real-kube-scheduler",
            "how-to/shadow",
            "how-to/shared-gpus",
            "how-to/small-cluster",
            "how-to/test-manifests",
            "how-to/troubleshooting",
            "plan",
            "preemption-through-the-versions",
            "questions",
            "simulate",
            "tour",
            "tune",
            "victim-policies",
        )
    ),
]
"""The pages whose commands are run here."""
ELSEWHERE = {"docs/maintain/releasing.md": "a maintainer, who tags and uploads"}
"""The pages whose commands something else runs."""
AT_REST = ("docs/questions.md", "docs/ten-questions.md", "docs/tour.md")
"""The pages that tell of a cluster in which everything was decided."""

WITH_SSD = {f"node-{zone}{number}" for zone in "abc" for number in (2, 3)}
"""Nodes of the example cluster that have an SSD, and no taint."""

DEVELOPING = ("$ make ", "$ go ")
"""How blocks of the README begin that are for developers: tests/test_readme.py looks at them."""
VARYING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\d+ ms|\d+ attempts?|"
    r"\b\d+\.\d\b(?! of )|(?<=\s)\d+[smhdy]\w*\b|\b10(\.\d+){3}\b|(?<=web-)[0-9a-z]+-[0-9a-z]{5}\b|"
    r"round \d.*|GPUs allocated over.*"
)
"""Times, UIDs, addresses, generated names, GPU-hours, which grow while nobody looks, and what an agent learned."""
LIMIT = 8
"""Commands from nothing to a plugin that decides."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def typed(page: Path) -> list[tuple[str, list[str]]]:
    """Each command of a page, with the lines that it is said to print; of the README, what its users type."""
    parts = [
        part
        for block in blocks(page, "console")
        if not block.startswith(DEVELOPING)
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]
    return [_command(part.rstrip("\n").split("\n")) for part in parts]


def _command(lines: list[str]) -> tuple[str, list[str]]:
    """The command that these lines begin with: it goes on while a quote is open, or after a backslash."""
    for number in range(1, len(lines) + 1):
        command = "\n".join(lines[:number])
        if not command.endswith("\\") and _is_whole(command):
            return command.split("  #")[0].strip(), lines[number:]
    raise AssertionError(f"no end of {lines}")


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True


# The site.


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it: a warning ends it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


class Links(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.add(value)
            if value and name == "id":
                self.anchors.add(value)


@pytest.mark.slow
def test_no_link_of_the_site_leads_nowhere(site: Path) -> None:
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html")}
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("data:"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target_page = pages.get(target)
            if not target.exists() or (
                parts.fragment and target_page is not None and unquote(parts.fragment) not in target_page.anchors
            ):
                lost.append((str(path.relative_to(site)), link))

    assert len(pages) > 25
    assert lost == []


@pytest.mark.slow
def test_links_to_the_web_can_be_looked_up(site: Path) -> None:
    """`make linkcheck` does, with the web; here each is an address that it can look up."""
    links = {link for path in site.rglob("*.html") for link in Links(path.read_text()).links if urlsplit(link).netloc}
    wrong = [link for link in links if not re.fullmatch(r"https://([a-z0-9-]+\.)+[a-z]{2,}(/[\w./#~%+-]*)?", link)]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "links.yml").read_text())

    assert len(links) > 10
    assert wrong == []
    assert "make linkcheck" in [step.get("run") for step in workflow["jobs"]["links"]["steps"]]


@pytest.mark.slow
def test_every_page_is_in_the_site(site: Path) -> None:
    """But for what only people who change Reprieve read."""
    names = [page.relative_to(DOCS) for page in EVERY_PAGE]

    left_out = {name.parts[0] for name in names if not (site / name.with_suffix(".html")).exists()}
    assert left_out == {"decisions", "licences.md", "maintain"}


@pytest.mark.slow
def test_former_addresses_lead_to_pages(site: Path) -> None:
    led = {path: re.search(r"url=([^\"]+)", path.read_text()) for path in site.rglob("*.html")}

    moved = {path: match[1] for path, match in led.items() if match}
    assert "performance.html" in {path.name for path in moved}
    assert [path for path, target in moved.items() if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text() == PAGES[name]().rstrip("\n") + "\n", "run `make docs`"


def test_every_command_and_option_has_a_place_in_the_reference() -> None:
    page = (FOLDER / "commands.md").read_text() + (DOCS / "flags.md").read_text()
    group: Any = typer.main.get_command(app)
    parameters = [
        parameter
        for command in SUBCOMMANDS
        for parameter in group.commands[command].load().params
        if not getattr(parameter, "hidden", False)
    ]
    options = {name for parameter in parameters for name in parameter.opts if name.startswith("-")}

    assert [command for command in SUBCOMMANDS if f"## reprieve {command}\n" not in page] == []
    assert [name for name in sorted(options) if f"`{name}`" not in page] == []


# Commands.


def test_every_page_with_commands_is_run_somewhere() -> None:
    pages = {str(page.relative_to(ROOT)) for page in EVERY_PAGE if typed(page) and "decisions" not in page.parts}

    assert pages - {*PLAYED} - {*ELSEWHERE} == set()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment in which plugins may be built and installed, with the extras `mcp` and `gym`, and pytest."""
    environment = installed_into(tmp_path_factory.mktemp("reader"))
    for name in ("hatchling", "pathspec", "trove-classifiers", "packaging", "pluggy"):
        link_distribution(name, environment.libraries)
    for name in ("mcp", "gymnasium", "pytest"):
        link_with_requirements(name, environment.libraries)
    return environment


@pytest.mark.parametrize("name", [README, *(pytest.param(name, marks=pytest.mark.slow) for name in PLAYED[1:])])
def test_the_commands_of_a_page_do_what_it_says(place: Environment, tmp_path: Path, name: str) -> None:
    journey, ports = Journey(place, tmp_path), {"8888": str(free_port()), "8080": str(free_port())}
    server = f"http://127.0.0.1:{ports['8888']}"
    variables = {"REPRIEVE_PORT": ports["8888"], "REPRIEVE_KUBERNETES_PORT": ports["8080"], "REPRIEVE_SERVER": server}
    example = yaml.safe_load((ROOT / "api" / "examples" / "cluster.yaml").read_text())
    (tmp_path / "cluster.json").write_text(json.dumps(example, default=str))
    for folder in ("api/examples", "deploy", "examples"):
        (tmp_path / folder).parent.mkdir(exist_ok=True)
        (tmp_path / folder).symlink_to(ROOT / folder)
    stand_in(tmp_path)  # for the page that has a real kube-scheduler
    absent_programs = {program for program in ("curl", "kubectl") if shutil.which(program) is None}
    left_out: list[str] = []
    with ExitStack() as background:
        for command, output in typed(ROOT / name):
            if command.split()[0] in absent_programs:
                left_out.append(command)
                continue
            line = with_ports(command, ports).replace(
                "pip install .", "pip install --no-build-isolation --no-deps --no-index ."
            )
            if line.startswith("cd "):
                journey.cd(line.removeprefix("cd "))
            elif line == "kill %1":
                background.close()
            elif line.endswith("&"):
                settings = " ".join(f"{key}={value}" for key, value in variables.items())
                background.enter_context(journey.beside(f"env {settings} {line[:-1]}")).until_ready(f"{server}/readyz")
                if name in AT_REST:
                    until_at_rest(server)
            else:
                # Of the example cluster a pod waits for a GPU whatever is tried.
                printed = journey.type(line, fails="whatif --pending" in line, also=variables)
                assert is_as_said([with_ports(line, ports) for line in output], printed), f"{command}\n{printed}"
        if name == "docs/tutorial.md":
            assert {node_of_a_new_pod(ports["8080"], number) for number in range(4)} <= WITH_SSD
    journey.environment.run("pip uninstall --yes my-policy shared-gpu")
    print(journey.report())
    if left_out:
        pytest.skip(f"all but {len(left_out)} commands were run: {', '.join(sorted(absent_programs))} not installed")


def node_of_a_new_pod(kube: str, number: int) -> str:
    """The node on which the embedded cluster's scheduler puts a pod of the front tier."""
    pods = f"http://127.0.0.1:{kube}/api/v1/namespaces/default/pods"
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}
    pod = {"metadata": {"name": f"front-{number}", "labels": {"tier": "front"}}, "spec": {"containers": [container]}}
    urllib.request.urlopen(
        urllib.request.Request(pods, json.dumps(pod).encode(), {"Content-Type": "application/json"}), timeout=30
    ).close()

    def node() -> str:
        with urllib.request.urlopen(f"{pods}/front-{number}", timeout=DEADLINE) as answer:
            return str(json.load(answer)["spec"].get("nodeName", ""))

    return until(node)


def with_ports(text: str, ports: dict[str, str]) -> str:
    for page_port, real in ports.items():
        text = text.replace(f"127.0.0.1:{page_port}", f"127.0.0.1:{real}")
    return text


def is_as_said(quoted: list[str], printed: str) -> bool:
    """Whether the lines are those that were said, any number of them where `...` stands, and whatever where nothing is
    said.
    """
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(_fixed(line)) + r"\n" for line in quoted)
    lines = "".join(f"{_fixed(line)}\n" for line in printed.splitlines())
    return not quoted or re.match(pattern, lines) is not None


def _fixed(line: str) -> str:
    """A line without what differs each time, and without how wide its columns are."""
    return " ".join(VARYING.sub("N", line).split())


def test_a_plugin_decides_after_eight_commands() -> None:
    """From the tutorial, to which the README leads, up to the pod that the plugin refuses."""
    commands = [command for command, _ in typed(DOCS / "tutorial.md")]

    assert "(docs/tutorial.md)" in (ROOT / "README.md").read_text()
    assert len(commands) <= LIMIT
    assert commands[-2:] == ["reprieve serve --config scheduler-config.yaml &", "reprieve whatif -f rules/web.yaml"]


def test_commands_that_need_a_cluster_can_be_read_by_a_shell() -> None:
    lines = [line for page in EVERY_PAGE for block in blocks(page, "sh") for line in block.splitlines() if line.strip()]

    unread = [
        line
        for line in lines
        if subprocess.run(["bash", "-n", "-c", line], check=False, capture_output=True).returncode
    ]
    assert lines and unread == []


def test_every_command_that_is_named_has_the_options_that_are_named() -> None:
    """In sentences and tables, in blocks, and in the papers beside what is deployed or tried."""
    group: Any = typer.main.get_command(app)
    papers = [page for page in EVERY_PAGE if "decisions" not in page.parts]
    papers += [ROOT / "README.md", *(ROOT / "deploy").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    mentions = {
        (paper.name, command)
        for paper in papers
        for command in re.findall(r"(?:^\$ |^|`)((?:kubectl )?reprieve [a-z][^`\n|]*)", paper.read_text(), re.MULTILINE)
    }
    strange = []
    for paper, command in mentions:
        words = command.split("  #")[0].removeprefix("kubectl ").split()
        of_ours = group.commands.get(words[1])
        if of_ours is None:
            strange.append((paper, command))
            continue
        names = {name for option in of_ours.load().params for name in (*option.opts, *option.secondary_opts)}
        used_options = {word.split("=")[0].strip("'[](),.;") for word in words[2:] if word.startswith("--")}
        strange += [(paper, option) for option in used_options - names - {"--help"}]

    assert len(mentions) > 100
    assert strange == []


def test_figures_stand_on_one_page() -> None:
    """Each is measured by one command; a number that is told twice is soon two numbers."""
    papers = [ROOT / "README.md", *(page for page in EVERY_PAGE if "decisions" not in page.parts)]
    speeds = re.compile(r"\d[\d,.]*\*{0,2} (?:\w+ )?(?:a|per) second|\d times as fast")

    assert {page.name for page in papers if speeds.search(page.read_text())} <= {"figures.md"}
    assert "Written by `make figures`" in (DOCS / "figures.md").read_text()


def test_the_readme_has_four_doors_of_equal_rank_and_two_pictures() -> None:
    """And says what cannot work yet, and that it is young; the landing page of the documentation is the same."""
    readme = (ROOT / README).read_text()
    parts = {part.split("\n")[0]: part for part in readme.split("\n## ")[1:]}
    doors = ("Ask", "Your rule", "Decide", "Try")

    assert [*parts][:4] == [*doors] and all("```console\n$ " in parts[door] for door in doors)
    assert len(readme.splitlines()) <= 110
    assert len(re.findall(r"!\[", readme)) == 2
    assert {f"({door})" for door in DOORS[1:]} <= set(re.findall(r"\([\w/.-]+\)", readme))
    assert "Nothing is published yet" in readme and "Reprieve is young" in readme
    assert "```{include} ../README.md\n" in (DOCS / "index.md").read_text()


def test_the_readme_shows_the_rule_that_init_makes() -> None:
    readme_lines = blocks(ROOT / README, "python")[0].splitlines()
    policy = (ROOT / "api" / "examples" / "plugin" / "my_policy.py").read_text()

    assert all(line in policy for line in readme_lines if line and not line.startswith("class "))


def test_the_readme_has_its_figures_from_the_page_of_figures() -> None:
    """The line of mixed pods on 5,000 nodes, and that of all cases."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in (DOCS / "figures.md").read_text().splitlines()]
    speed = next(row for row in rows if row[:2] == ["5,000", "mixed"])
    cases = next(row for row in rows if row[:1] == ["all"])
    readme = (ROOT / README).read_text()

    assert f"in {cases[2]} of {cases[1]} cases" in readme
    assert (
        f"takes {speed[2]} ms of CPU, in kube-scheduler {speed[5]} by default and {speed[7]} if it scores all" in readme
    )
