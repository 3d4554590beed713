"""What a call with thousands of nodes in full costs this side of the engine: decoding, the memo of bodies, and the
echo.

python -m bench.full_nodes [NODES] [BYTES PER NODE]
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable

from api.documents.documentation import POD
from extender.values.protocol.node_lists import DecodedNodes
from extender.values.protocol.verb_arguments import AskedNodes, read_extender_args
from extender.values.protocol.verb_results import filter_result

PART = 2**18
"""Bytes of a body that arrive at a time."""


def node(number: int, size: int, version: int = 0) -> dict[str, object]:
    name = f"node-{number:05d}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    obj: dict[str, object] = {
        "metadata": {
            "name": name,
            "resourceVersion": str(version),
            "labels": labels,
            "annotations": {"applied": '{"a":"b"}\n'},
        },
        "spec": {},
        "status": {"allocatable": {"cpu": "7800m", "memory": "30Gi", "pods": "110"}, "images": []},
    }
    images: list[object] = []
    obj["status"]["images"] = images  # type: ignore[index]
    while (length := len(json.dumps(obj))) < size:
        images.extend(
            {
                "names": [f"registry.example/app-{place}@sha256:{place:064d}", f"registry.example/app-{place}:1"],
                "sizeBytes": 10**7 + place,
            }
            for place in range(len(images), len(images) + 1 + (size - length) // 170)
        )
    return obj


def body_of(nodes: list[dict[str, object]]) -> bytes:
    return json.dumps(
        {"Pod": POD, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}, separators=(",", ":")
    ).encode()


def shortest(call: Callable[[], object], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def main() -> None:
    count, size = (int(argument) for argument in (sys.argv[1:] + ["5000", "5000"][len(sys.argv) - 1 :])[:2])
    nodes = [node(number, size) for number in range(count)]
    body = body_of(nodes)
    decoded_nodes = DecodedNodes()

    def read(body: bytes, decoded_nodes: DecodedNodes) -> AskedNodes:
        arriving = decoded_nodes.arriving()
        for start in range(0, len(body), PART):
            arriving.take(body[start : start + PART])
        return asyncio.run(read_extender_args(arriving.finish(), decoded_nodes))

    print(f"{count} nodes, {len(body) / 2**20:.1f} MiB")
    print(f"cold: decode {shortest(lambda: read(body, DecodedNodes()), 2):7.1f} ms")
    arguments = read(body, decoded_nodes)
    print(f"warm: decode {shortest(lambda: read(body, decoded_nodes)):7.1f} ms")
    feasible = list(range(count))
    print(f"      encode {shortest(lambda: filter_result(arguments, feasible, {}, {})):7.1f} ms, all kept")
    changed = [
        body_of([node(number, size, version if number < count // 100 else 0) for number in range(count)])
        for version in range(1, 4)
    ]
    start = time.perf_counter()
    for other in changed:
        read(other, decoded_nodes)
    print(f"one node in a hundred changed: decode {1000 * (time.perf_counter() - start) / len(changed):7.1f} ms")


if __name__ == "__main__":
    main()
