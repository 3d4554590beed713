"""Reprieve's scheduler, in rooms. A room imports only from rooms below its own:

    assembly             Builds a backend from the parts below; starts and stops it.
    answers | verbs      Answers for people, and the records. Filter, prioritize, preempt and bind, for kube-scheduler.
    client               The client of the Kubernetes API, and of HTTP extenders.
    engine | rules       Decides: queue, cycles, plugins, preemption. What an API server says of an object.
    values               API objects, configuration, wire types, and values as Go reads and prints them.

`testing` stands beside: builders and laws for plugin authors and for our own tests; the engine never imports it. Users
import the package `reprieve`; this one is for those who change Reprieve. There is no HTTP server in here; requests,
pages and commands are in the package `api`.

Where a docstring says `Upstream:`, files of Kubernetes 1.36.2 follow, unless it says another version.
"""

from typing import Final

__version__ = "0.1.0"

KUBERNETES_VERSION: Final = "v1.36.2"
"""What is told to those who ask for the version of Kubernetes."""


def how_to_install(extra: str) -> str:
    """Returns the command that installs an extra; a release shortens it (docs/maintain/releasing.md)."""
    return f"pip install '.[{extra}]' in a clone of the repository, since nothing is published before the first release"
