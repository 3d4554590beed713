"""The sample of a GPU trace that ships."""

from pathlib import Path

import pytest

from extender.values.config.configuration import Configuration
from reprieve.lab.simulation import play, read_workloads
from tools import generate_gpu_sample


def test_the_sample_is_what_its_generator_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = {file.name: file.read_text() for file in generate_gpu_sample.FOLDER.iterdir()}
    monkeypatch.setattr(generate_gpu_sample, "FOLDER", tmp_path)

    generate_gpu_sample.main()

    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == shipped


def test_the_sample_fills_most_of_the_gpus() -> None:
    (workload,) = read_workloads(generate_gpu_sample.FOLDER)

    report = play(workload, Configuration()).report

    assert report.pods > 200
    assert 0.7 < report.allocated["alibabacloud.com/gpu-milli"] < 1
    assert report.refused
