"""Links to what-ifs: the fields of the form in the fragment of an address, which a browser sends to nobody; and the
same as a command.
"""

from collections.abc import Sequence
from shlex import quote as quoted
from typing import Final
from urllib.parse import quote, urlencode

from api.ui.manifest_text import written
from extender.answers.types import Fix, WhatIfRequest

SAMPLE: Final = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: sample
value: 100000
---
apiVersion: v1
kind: Pod
metadata:
  name: sample
spec:
  priorityClassName: sample
  containers:
  - name: main
    image: registry.example/app:1
    resources:
      requests: {cpu: "2", memory: 1Gi}
"""


def fix_href(fix: Fix) -> str:
    """Returns the address of a what-if that tries the change; empty if nothing can be tried."""
    if not fix.objects:
        return ""
    fields = {"manifest": written(fix.objects)}
    if fix.add_like:
        fields |= {"like": fix.add_like, "count": "1"}
    return f"/ui/what-if#{urlencode(fields, quote_via=quote)}"


def command(question: WhatIfRequest, manifest: str, configuration: str) -> str:
    """Returns the command that asks the same, with the texts as files to be written before.

    Arguments:
        manifest, configuration: as they were pasted.
    """
    words = ["reprieve", "whatif", *_each("--drain", question.drain_nodes), *_each("--remove", question.remove_nodes)]
    for each in question.add_nodes:
        words += ["--add-nodes", str(each.count), "--like", quoted(each.like)]
    if configuration.strip():
        words += ["--with-config", "config.yaml"]
    if question.include_pending:
        words.append("--pending")
    lines = [f"cat > config.yaml <<'END'\n{configuration.rstrip()}\nEND\n"] if configuration.strip() else []
    if manifest.strip():
        return "".join([*lines, " ".join([*words, "-f", "-"]), f" <<'END'\n{manifest.rstrip()}\nEND"])
    return "".join([*lines, " ".join(words)])


def _each(option: str, names: Sequence[str]) -> list[str]:
    return [word for name in names for word in (option, quoted(name))]
