"""The files that a user's kube-scheduler is started with."""

from pathlib import Path

import yaml

from reprieve.lab.kube_scheduler import written_for


def test_the_service_is_cluster_and_extender(tmp_path: Path) -> None:
    file, text = written_for("http://127.0.0.1:8888", tmp_path)

    configuration = yaml.safe_load(file.read_text())
    kubeconfig = yaml.safe_load(Path(configuration["clientConnection"]["kubeconfig"]).read_text())
    assert file.read_text() == text
    assert [cluster["cluster"]["server"] for cluster in kubeconfig["clusters"]] == ["http://127.0.0.1:8888"]
    assert kubeconfig["current-context"] in [context["name"] for context in kubeconfig["contexts"]]
    assert configuration["extenders"][0]["urlPrefix"].startswith("http://127.0.0.1:8888/")
