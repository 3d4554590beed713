"""Two examples of each command, with which its help ends."""

from typing import Final

_SERVICE: Final = "http://127.0.0.1:8888"

EXAMPLES: Final = {
    "why": ("shop/web-6", "deploy/web -n shop --dump cluster.json -o wide"),
    "pending": ("", "-n batch -o name"),
    "top": ("", f"--server {_SERVICE}"),
    "who-preempted": ("", "--since 1h -o wide"),
    "whatif": ("--drain node-a1", "-f deployment.yaml --add-nodes 3 --like node-a1"),
    "victims": ("-f pod.yaml", "-f pod.yaml --dump cluster.json -o wide"),
    "fits": ("-f deployment.yaml", "-f pod.yaml --limit 500 -o json"),
    "plan": ("--for pod.yaml", "--free-nodes 2 --of nvidia.com/gpu -o sh"),
    "simulate": ("workload.yaml", "workload.yaml --seed 7 -o html > report.html"),
    "tune": ("workload.yaml --maximise placed", "day.recording --minimise waiting.p90 --write tuned.yaml"),
    "replay": ("day.recording", "day.recording --config scheduler-config.yaml"),
    "shadow": ("report", "run --for 24h"),
    "init": ("my-policy", "rack-policy --plugin PackRacks"),
    "test": ("my-policy", "my-policy --seed 7"),
    "dev": ("--folder my-policy --dump cluster.json", "my_policy.py --dump cluster.json -o wide"),
    "plugins": ("", "--all -o wide"),
    "verify": ("rules", "rules --junit results.xml"),
    "evaluate": ("scenarios.jsonl", "scenarios.jsonl --config scheduler-config.yaml"),
    "serve": ("", "--kubeconfig ~/.kube/config --no-schedule"),
    "mcp": ("", "--list --dump cluster.json"),
    "print-scheduler-config": (f"--url {_SERVICE}", f"--url {_SERVICE} --no-check"),
    "doctor": (f"{_SERVICE}/extender", f"{_SERVICE}/extender -o json"),
    "print-config": ("", "--config scheduler-config.yaml"),
    "completion": ("bash > /etc/bash_completion.d/reprieve", "fish | source"),
}
"""What follows the name of the command."""

LINES: Final = {
    name: [f"reprieve {name} {arguments}".rstrip() for arguments in pair] for name, pair in EXAMPLES.items()
}
"""The lines that a person would type."""
