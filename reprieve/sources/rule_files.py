"""Files with scheduling rules, what they name, and files that keep where pods went, to compare with."""

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final, final

import msgspec
import yaml

from extender import rules
from extender.rules.state_file import load_state
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gates import FeatureGates, parse_version
from extender.values.config.loading import load as load_configuration
from extender.values.golang.json import plain
from extender.values.golang.yaml import YamlError, read_yaml, split_documents
from extender.values.reasons import InputError, in_one_line
from reprieve.errors import StartUpError
from reprieve.lab.verification.rules import Rule, listed, read_rule
from reprieve.lab.verification.verification import PodDestinations, RuleError, RuleOutcome, UnmetExpectation, verify
from reprieve.sources.configurations import read_configuration
from reprieve.sources.manifest_files import read_manifests

_HEAD: Final = "# Where pods went; `reprieve verify --golden FILE --update` writes this file.\n"


@final
class DecisionsFile:
    """The decisions in a file, of each rule by the rule's own file and name."""

    def __init__(self, path: Path, *, is_updated: bool) -> None:
        """Reads the file, unless it is to be written. Raises StartUpError if it is no golden file."""
        self.is_updated: Final = is_updated
        self._path = path
        self._kept: Mapping[str, PodDestinations] = {} if is_updated else _kept_decisions(path)
        self._made: dict[str, PodDestinations] = {}

    def unmet(self, rule: Path, name: str, decisions: PodDestinations, *, is_again: bool) -> Iterator[UnmetExpectation]:
        """Yields differences from the golden file; none while the first version writes the file."""
        key = f"{Path(os.path.relpath(rule.absolute(), self._path.absolute().parent)).as_posix()}: {name}"
        if self.is_updated and not is_again:
            self._made[key] = decisions
        golden = (self._made if self.is_updated else self._kept).get(key)
        if golden is None:
            yield UnmetExpectation(f"decisions in {self._path}", "it has none for this rule; --update writes them")
            return
        for pod in sorted({*golden.pods, *decisions.pods}):
            before, now = golden.pods.get(pod, "not there"), decisions.pods.get(pod, "not there")
            if before != now:
                yield UnmetExpectation(f"{pod}: {before}, as in {self._path}", now)
        for pod in sorted({*golden.evicted, *decisions.evicted}):
            origin, new_origin = golden.evicted.get(pod), decisions.evicted.get(pod)
            if origin != new_origin:
                yield UnmetExpectation(f"{pod}: {_from(origin)}, as in {self._path}", _from(new_origin))

    def write(self) -> None:
        """Writes what was decided, if the file is to be written. Raises StartUpError if it cannot."""
        if not self.is_updated:
            return
        text = yaml.safe_dump(msgspec.to_builtins(self._made), allow_unicode=True, width=10_000)
        try:
            self._path.write_text(_HEAD + text, encoding="utf-8")
        except OSError as exc:
            raise StartUpError(f"{self._path}: {in_one_line(exc)}") from exc


def _from(node: str | None) -> str:
    return "not evicted" if node is None else f"evicted from {node}"


def _kept_decisions(path: Path) -> dict[str, PodDestinations]:
    try:
        content = plain(read_yaml(path.read_text(encoding="utf-8")).value) or {}
        return msgspec.convert(content, dict[str, PodDestinations])
    except FileNotFoundError as exc:
        raise StartUpError(f"{path}: no such file; --update writes it") from exc
    except (OSError, UnicodeDecodeError, YamlError, msgspec.ValidationError) as exc:
        raise StartUpError(f"{path}: {in_one_line(exc)}") from exc


_ENDINGS: Final = (".yaml", ".yml", ".json", ".gz")


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one rule."""

    file: Path
    name: str
    seconds: float
    failures: Sequence[UnmetExpectation] = ()
    error: str = ""
    """Why the rule could not be tried; empty otherwise."""
    version: str = ""
    """The version of kube-scheduler that decided, where several were tried."""

    @property
    def title(self) -> str:
        return f"{self.name} [{self.version}]" if self.version else self.name

    @property
    def holds(self) -> bool:
        return not (self.failures or self.error)


@final
@dataclass(frozen=True, slots=True)
class Decider:
    """A configuration that decides about rules, and the decisions to compare with."""

    configuration: Configuration
    """Of the rules that bring none."""
    version: str = ""
    """The version of kube-scheduler, where several are tried."""
    golden: DecisionsFile | None = None
    is_again: bool = False
    """Whether an earlier version decided already."""


def deciders(config: Path | None, versions: Sequence[str], golden: DecisionsFile | None) -> Iterator[Decider]:
    """Yields a decider for each version of kube-scheduler; without versions, for the newest. Raises StartUpError."""
    for number, version in enumerate(versions or [""]):
        configuration = read_configuration(config, _features(version))
        yield Decider(configuration, version if len(versions) > 1 else "", golden, is_again=number > 0)


def verdicts(tests: Sequence[Path], decider: Decider) -> Iterator[Verdict]:
    """Yields the verdict on each rule below the paths, once it is known. Raises StartUpError."""
    for path in tests:
        for file in _files(path, (".yaml", ".yml")):
            yield from _verdicts(file, decider)


def _files(path: Path, endings: Sequence[str] = _ENDINGS) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file() and file.name.endswith(tuple(endings)))
    if not path.exists():
        raise StartUpError(f"{path}: no such file or directory")
    return [path]


def _features(version: str) -> FeatureGates | None:
    try:
        return FeatureGates.of({}, parse_version(version)) if version else None
    except ValueError as exc:
        raise StartUpError(f"--k8s {version}: {exc}") from exc


def _verdicts(file: Path, decider: Decider) -> Iterator[Verdict]:
    version = decider.version
    try:
        documents = [plain(read_yaml(text).value) for text in split_documents(file.read_text())]
    except (OSError, UnicodeDecodeError, YamlError) as exc:
        yield Verdict(file, str(file), 0.0, error=in_one_line(exc), version=version)
        return
    # Manifests lie beside the rules that name them.
    rules = [
        document
        for document in documents
        if document is not None and not (isinstance(document, dict) and {"kind", "apiVersion"} <= document.keys())
    ]
    names: set[str] = set()
    for number, document in enumerate(rules, start=1):
        name = str(document.get("name") or "") if isinstance(document, dict) else ""
        name = name or (f"{file.name} {number}" if len(rules) > 1 else file.name)
        own_name = f"{name} {number}" if name in names else name
        names.add(name)
        began = perf_counter()
        try:
            outcome = _outcome(read_rule(document), file.parent, decider.configuration)
        except (InputError, RuleError) as exc:
            yield Verdict(file, name, perf_counter() - began, error=in_one_line(exc), version=version)
            continue
        unmet = list(outcome.unmet)
        if decider.golden is not None:
            unmet += decider.golden.unmet(file, own_name, outcome.decisions, is_again=decider.is_again)
        yield Verdict(file, name, perf_counter() - began, unmet, version=version)


def _outcome(rule: Rule, folder: Path, default: Configuration) -> RuleOutcome:
    """Tries a rule. Files that it names are relative to the folder."""
    existing = [
        obj for name in listed(rule.given.existing) for file in _files(folder / name) for obj in load_state(file)
    ]
    applied = [
        obj for name in listed(rule.when.apply) for file in _files(folder / name) for obj in read_manifests(str(file))
    ]
    configuration = default
    if isinstance(rule.given.configuration, str):
        configuration = read_configuration(folder / rule.given.configuration, default.feature_gates)
    elif rule.given.configuration is not None:
        configuration = load_configuration(msgspec.json.encode(rule.given.configuration), default.feature_gates)
    return verify(rule, existing, applied, configuration, partial(rules.trial, features=configuration.feature_gates))


def write_junit(path: Path, verdicts: Sequence[Verdict]) -> None:
    """Writes JUnit's form, which most build servers read, with one suite a file. Raises StartUpError if it cannot."""
    root = ET.Element("testsuites", name="reprieve verify")
    for file in dict.fromkeys(verdict.file for verdict in verdicts):
        cases = [verdict for verdict in verdicts if verdict.file == file]
        suite = ET.SubElement(
            root,
            "testsuite",
            name=str(file),
            tests=str(len(cases)),
            failures=str(sum(bool(case.failures) for case in cases)),
            errors=str(sum(bool(case.error) for case in cases)),
            time=f"{sum(case.seconds for case in cases):.3f}",
        )
        for case in cases:
            element = ET.SubElement(suite, "testcase", classname=str(file), name=case.title, time=f"{case.seconds:.3f}")
            if case.error:
                ET.SubElement(element, "error", message=case.error)
            for failure in case.failures:
                message = f"expected {failure.expected}, but {failure.happened}"
                ET.SubElement(element, "failure", message=message).text = message
    try:
        ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as exc:
        raise StartUpError(f"{path}: {in_one_line(exc)}") from exc
