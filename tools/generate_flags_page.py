"""Writes docs/flags.md: every setting, and every flag of kube-scheduler that has no effect here.

python -m tools.generate_flags_page
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from api.cli.flags import FOREIGN
from api.settings.declarations import Declaration, Group
from api.settings.settings import DECLARATIONS

_HEAD: Final = """\
# Flags

`reprieve serve` takes kube-scheduler's flags where they mean the same, in its spelling: `--leader-elect=false`, `-v=2`.
Its other flags are ignored with a line in the log (`"A flag has no effect"`), or refused at the start if an operator
would rely on something that does not happen. In the environment, `--kube-api-qps` is `REPRIEVE_KUBE_API_QPS`, and so
on; flags win.

A manifest of kube-scheduler starts with this image and the command `reprieve-scheduler`, which is
`reprieve serve --schedule --bind-address=0.0.0.0 --secure-port=10259`; flags that follow win. The image runs as user
65532: where only root may read `/etc/kubernetes/scheduler.conf`, as with kubeadm, let that user read it, or give the
pod `runAsUser: 0`.
"""

_SETTINGS: Final = {
    Group.OURS: "",
    Group.KUBE_SCHEDULER: "`--write-config-to FILE` writes the configuration in force to a file and exits.\n",
    Group.ENVIRONMENT: "Limits on callers.\n",
}

_EFFECTS: Final = {False: "Ignored", True: "Refused"}


def page() -> str:
    """Returns the whole text of docs/flags.md."""
    return "\n".join([_HEAD, *_settings(), *_foreign_flags()])


def _settings() -> Iterator[str]:
    for group, words in _SETTINGS.items():
        columns = (
            ("environment", "default", "what it sets")
            if group is Group.ENVIRONMENT
            else ("flag", "default", "what it sets")
        )
        yield _section(
            group.value,
            words,
            columns,
            [_row(declaration) for declaration in DECLARATIONS.values() if declaration.option.group is group],
        )


def _row(setting: Declaration) -> list[str]:
    default = setting.default_in_words
    is_variable = setting.option.group is Group.ENVIRONMENT
    names = (setting.variable,) if is_variable else (setting.flag, *setting.option.also)
    return [
        ", ".join(f"`{name}`" for name in names),
        default if setting.default is None or not default else f"`{default}`",
        f"{setting.help}.",
    ]


def _foreign_flags() -> Iterator[str]:
    for is_refused, heading in _EFFECTS.items():
        reasons: dict[str, list[str]] = {}
        for name, flag in FOREIGN.items():
            if flag.is_refused is is_refused:
                reasons.setdefault(flag.why, []).append(f"`--{name}`")
        yield _section(heading, "", ("flags", "why"), [[", ".join(names), why] for why, names in reasons.items()])


def _section(heading: str, words: str, columns: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [
        f"## {heading}",
        "",
        *([words] if words else []),
        _line(columns),
        "|" + "---|" * len(columns),
        *map(_line, rows),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Writes the file, by default docs/flags.md in the current folder."""
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/flags.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
