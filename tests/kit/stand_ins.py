"""Programs in the place of etcd and kube-apiserver, for what needs an API server that answers and no real one."""

import sys
from pathlib import Path
from typing import Final

from tests.kit.service import ROOT

FAKE: Final = Path(__file__).with_name("fake_program.py")


def pretending(folder: Path) -> Path:
    """Writes programs that only pretend, and returns their folder: they start, answer anything, and end."""
    assets = folder / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver"):
        _write(assets / name, f'exec "{sys.executable}" -I "{FAKE}" {name} "{assets}" "$@"')
    return assets


def stand_ins(folder: Path, *flags: str) -> Path:
    """Writes both, and returns their folder. The one takes kube-apiserver's flags and serves an embedded cluster over
    TLS, to callers with any token; the cluster outlives the process in a file. The other only answers that it is well.

    Arguments:
        flags: further flags of `reprieve serve`.
    """
    assets = folder / "assets"
    assets.mkdir()
    saved = assets / "cluster.json"
    saved.write_text('{"apiVersion": "v1", "kind": "List", "items": []}')
    serve = (
        "serve --no-schedule --port 0 --kubernetes-port $secure_port --tls-cert-file $tls_cert_file "
        f'--tls-private-key-file $tls_private_key_file --save "{saved}" {" ".join(flags)}'
    )
    read_flags = 'for each in "$@"; do name=${each%%=*}; export "$(echo ${name#--} | tr - _)=${each#*=}"; done'
    programs = {
        "etcd": f'exec "{sys.executable}" -I "{FAKE}" etcd "{assets}" "$@"',
        "kube-apiserver": f'{read_flags}; cd "{ROOT}"; exec "{sys.executable}" -m api.cli {serve}',
    }
    for name, script in programs.items():
        _write(assets / name, script)
    return assets


def _write(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
