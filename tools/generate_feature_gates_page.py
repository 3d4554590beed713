"""Writes docs/feature-gates.md: what every feature gate is in each version, and what it does here.

python -m tools.generate_feature_gates_page
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from extender.values.config.feature_gate_table import DEFAULT_VERSION, GATES, VERSIONS, FeatureSpec, Gate

_HEAD: Final = f"""\
# Feature gates

`--feature-gates=A=true,B=false` switches features as kube-scheduler's flag does; `AllAlpha` and `AllBeta` stand for all
gates of a stage. `--emulated-version=1.37` takes the defaults of another version than {DEFAULT_VERSION}. Commands that
decide by themselves, such as `reprieve why --dump`, read `REPRIEVE_FEATURE_GATES` and `REPRIEVE_EMULATED_VERSION`;
[a trial](library.md#configurations-and-plugins) takes `feature_gates=` over them.

A gate that is unknown, locked, newer than the emulated version, or needs another one that is off is refused in
kube-scheduler's words. Gates of other parts of Kubernetes have no effect, and the log says so. `/configz` shows which
gates are on, `/flagz` what was given.

`DRADeviceTaintRules` and `GenericWorkload` watch more kinds: the chart adds the rights if its value `featureGates` has
the gate; other manifests get them from `deploy/chart/files/roles.yaml`, under `gates`.

**on** and off are defaults, α is alpha, β is beta, 🔒 is locked. *Switches* means that either value does what it does
in kube-scheduler.
"""

_STAGES: Final = {"ALPHA": " α", "BETA": " β", "": ""}


def page() -> str:
    """Returns the whole text of docs/feature-gates.md."""
    return "\n".join([_HEAD, *_rows()]) + "\n"


def _rows() -> Iterator[str]:
    yield "| gate | from version on | here |\n|---|---|---|"
    for name, gate in sorted(GATES.items()):
        yield f"| `{name}` | {', '.join(_history(gate))} | {_here(gate)} |"


def _history(gate: Gate) -> Iterator[str]:
    """Yields what the gate is in the oldest version, and in each that changes it."""
    before = None
    for version in VERSIONS:
        spec = gate.at(version)
        if spec != before:
            yield f"{version} {_cell(spec)}"
        before = spec


def _cell(spec: FeatureSpec | None) -> str:
    if spec is None:
        return "gone"
    return f"{'**on**' if spec.default else 'off'}{_STAGES[spec.stage.value]}{' 🔒' if spec.locked else ''}"


def _here(gate: Gate) -> str:
    if gate.is_always_locked:
        return "always on"
    if gate.only is not None:
        return f"always {'on' if gate.only else 'off'}: {gate.why}"
    return f"no effect: {gate.why}" if gate.why else "switches"


def main() -> None:
    """Writes the file, by default docs/feature-gates.md in the current folder."""
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/feature-gates.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
