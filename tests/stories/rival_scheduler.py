"""A second scheduler, as a program: it knows nothing of nominations, and gives each pod of its name the first node with
room, where pods that are leaving do not count.

python tests/stories/rival_scheduler.py ADDRESS
"""

import json
import sys
import time
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

NAME: Final = "rival"
PAUSE: Final = 0.02


def answer_of(address: str, path: str, body: dict[str, Any] | None = None) -> Any:
    request = Request(
        f"{address}{path}", None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def cpu_of(pod: dict[str, Any]) -> int:
    return sum(int(container["resources"]["requests"]["cpu"]) for container in pod["spec"]["containers"])


def schedule_once(address: str) -> None:
    pods = answer_of(address, "/api/v1/pods")["items"]
    waiting = [pod for pod in pods if pod["spec"].get("schedulerName") == NAME and not pod["spec"].get("nodeName")]
    if not waiting:
        return
    for node in answer_of(address, "/api/v1/nodes")["items"]:
        name = node["metadata"]["name"]
        staying = [
            pod for pod in pods if pod["spec"].get("nodeName") == name and "deletionTimestamp" not in pod["metadata"]
        ]
        free = int(node["status"]["allocatable"]["cpu"]) - sum(map(cpu_of, staying))
        for pod in waiting:
            if cpu_of(pod) <= free:
                metadata = {"name": pod["metadata"]["name"]}
                binding = {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": metadata,
                    "target": {"kind": "Node", "name": name},
                }
                try:
                    answer_of(
                        address,
                        f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/binding",
                        binding,
                    )
                except HTTPError:
                    return  # it is gone, or bound already
                free -= cpu_of(pod)


def main() -> None:
    print("the rival schedules", flush=True)
    while True:
        schedule_once(sys.argv[1])
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
