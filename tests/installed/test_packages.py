"""The packages: what is in them, and what they do in an empty environment."""

import os
import shutil
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

from api.cli import SUBCOMMANDS
from extender import __version__
from tests.installed.environment import ROOT, Environment, build
from tools.play_commands import play

EXAMPLE = ROOT / "api" / "examples" / "cluster.yaml"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    return zipfile.Path(build("wheel", tmp_path_factory.mktemp("wheel")))


def names_in(wheel: zipfile.Path) -> set[str]:
    return {name for name in wheel.root.namelist() if not name.endswith("/")}


def test_every_file_of_all_packages_is_in_the_wheel(wheel: zipfile.Path) -> None:
    """Templates, tables and the example cluster as well as modules; `py.typed`, so that plugins are checked against our
    types.
    """
    files = {
        str(path.relative_to(ROOT))
        for package in ("api", "extender", "reprieve")
        for path in (ROOT / package).rglob("*")
        if path.is_file()
    }
    packaged = {name for name in names_in(wheel) if ".dist-info/" not in name}

    assert packaged == {file for file in files if "__pycache__" not in file}
    assert {"api/py.typed", "extender/py.typed", "reprieve/py.typed", "api/examples/cluster.yaml"} <= packaged


def test_wheel_installs_the_commands(wheel: zipfile.Path) -> None:
    entry_points = ConfigParser()
    entry_points.read_string((wheel / f"reprieve-{__version__}.dist-info" / "entry_points.txt").read_text())

    assert dict(entry_points["console_scripts"]) == {
        "reprieve": "reprieve:main",
        "reprieve-scheduler": "reprieve:schedule",
        "kubectl-reprieve": "reprieve:main",
        "kubectl_complete-reprieve": "reprieve:complete_for_kubectl",
    }


@pytest.mark.slow
def test_the_source_distribution_makes_the_same_wheel(wheel: zipfile.Path, tmp_path: Path) -> None:
    source = build("sdist", tmp_path / "sdist")
    with tarfile.open(source) as packed:
        packed.extractall(tmp_path, filter="data")
    unpacked = tmp_path / source.name.removesuffix(".tar.gz")

    rebuilt = zipfile.Path(build("wheel", tmp_path / "wheel", unpacked))

    assert names_in(rebuilt) == names_in(wheel)
    assert (unpacked / "README.md").exists()
    assert (unpacked / "tests" / "parity" / "cases").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["reprieve", "kubectl-reprieve"])
def test_the_installed_command_says_its_version(environment: Environment, command: str) -> None:
    done = environment.run(f"{command} --version")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"reprieve {__version__}\n", "")


@pytest.mark.slow
def test_the_installed_command_answers_about_a_dump(environment: Environment) -> None:
    """With nothing but what the wheel requires."""
    done = environment.run(f"reprieve why shop/web-6 --dump {EXAMPLE}")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("shop/web-6  Pending")


@pytest.mark.slow
def test_an_extra_that_is_not_installed_is_named(environment: Environment) -> None:
    done = environment.run(f"reprieve mcp --list --dump {EXAMPLE}")

    assert done.returncode == 2
    assert "pip install '.[mcp]' in a clone" in done.stderr


@pytest.mark.slow
def test_traces_without_their_extra_are_refused(environment: Environment) -> None:
    done = environment.run(
        "reprieve serve --port 0 --kubernetes-port 0", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318"
    )

    assert done.returncode == 2
    assert "pip install '.[otel]' in a clone" in done.stderr


# A package of another distribution has the name of ours.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["api", "extender"])
def test_a_foreign_package_that_comes_first_is_named(environment: Environment, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not to be run')")

    done = environment.run("reprieve --version", PYTHONPATH=str(tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"reprieve: another package named '{name}' comes before its own: {tmp_path / name}; "
        "take that folder out of PYTHONPATH, or install reprieve in a separate environment\n"
    )


@pytest.mark.slow
def test_package_of_ours_that_another_distribution_brings_is_named(environment: Environment, tmp_path: Path) -> None:
    """Uninstalling a distribution with a package `api` removes the files that both have."""
    damaged = tmp_path / "libraries"
    shutil.copytree(environment.libraries, damaged, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (damaged / "api" / "__init__.py").unlink()

    done = environment.run(f"PYTHONPATH={damaged} python -S -c 'import reprieve; reprieve.main()' --version")

    assert done.returncode == 1
    assert done.stderr.startswith(
        f"reprieve: its package 'api' is incomplete: {damaged}/api/__init__.py is missing; install it again"
    )


@pytest.mark.slow
def test_commands_and_the_library_do_what_they_do_in_the_repository(environment: Environment) -> None:
    play(environment.bin)


# Completion.


def completed(environment: Environment, shell: str, line: str) -> list[str]:
    """What the shell itself offers after this line."""
    scripts = {
        "bash": (
            f"source <(reprieve completion bash); COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
            "_reprieve_completion reprieve; printf '%s\\n' \"${COMPREPLY[@]}\""
        ),
        "fish": f"reprieve completion fish | source; complete -C '{line}'",
    }
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = environment.run(scripts[shell] if shell == "bash" else f"{shell} -c {quoted(scripts[shell])}")
    assert done.returncode == 0, done.stderr
    return [word.partition("\t")[0] for word in done.stdout.splitlines()]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes_commands_options_and_values(environment: Environment, shell: str) -> None:
    assert sorted(completed(environment, shell, "reprieve wh")) == ["whatif", "who-preempted", "why"]
    assert completed(environment, shell, "reprieve why --name") == ["--namespace"]
    assert completed(environment, shell, "reprieve why -o w") == ["wide"]


@pytest.mark.slow
def test_zsh_gets_the_same_candidates(environment: Environment) -> None:
    """Asked as its script asks: a line editor cannot be driven without a terminal."""
    done = environment.run('_REPRIEVE_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS="reprieve wh" reprieve')

    assert [word for word in ("why", "whatif", "who-preempted", "verify") if f'"{word}"' in done.stdout] == [
        "why",
        "whatif",
        "who-preempted",
    ]
    assert "_TYPER_COMPLETE_ARGS" in environment.run("reprieve completion zsh").stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_its_script(environment: Environment) -> None:
    done = environment.run(
        "zsh -fc 'autoload -Uz compinit; compinit -u -D; source <(reprieve completion zsh); echo ${_comps[reprieve]}'"
    )

    assert done.stdout == "_reprieve_completion\n", done.stderr


@pytest.mark.slow
def test_kubectl_completes_the_plugin(environment: Environment) -> None:
    """kubectl runs this command with the words so far, and wants a line each with its help, and what else to offer."""
    lines = environment.run("kubectl_complete-reprieve ''").stdout.splitlines()

    assert [line.partition("\t")[0] for line in lines] == [*SUBCOMMANDS, ":0"]
    assert environment.run("kubectl_complete-reprieve why --name").stdout == (
        "--namespace\tNamespace to use if none is given (that of the kubeconfig's context, else default).\n:0\n"
    )


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_itself_does(environment: Environment) -> None:
    kubectl = Path(str(shutil.which("kubectl"))).parent
    done = environment.run(
        "kubectl __complete reprieve who", PATH=os.pathsep.join([environment.variables()["PATH"], str(kubectl)])
    )

    assert done.stdout.splitlines()[0].startswith("who-preempted")
