"""`reprieve print-config`, with every default; and `print-scheduler-config`, with which Reprieve is called."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
import yaml

from api.cli.doctor import examined, protocol_schema
from api.cli.showing import printable
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration, Extender, ExtenderManagedResource
from extender.values.golang.times import Duration
from reprieve.errors import StartUpError
from reprieve.lab.doctor import Grade
from reprieve.lab.doctor.examined_service import ExaminedService
from reprieve.sources.configurations import read_configuration
from reprieve.sources.extenders import called_over


def print_config(
    config: Annotated[
        Path | None, typer.Option(help="KubeSchedulerConfiguration file (the defaults of kube-scheduler).")
    ] = None,
) -> None:
    """Print the scheduler's configuration with every default spelled out, as YAML."""
    document = written(read_configuration(config))
    yaml.safe_dump(document, sys.stdout, sort_keys=False, default_flow_style=False, width=140)


def print_scheduler_config(
    url: Annotated[
        str,
        typer.Option(
            help="URL of Reprieve for kube-scheduler: https://HOST:PORT, followed by --prefix if that is set."
        ),
    ],
    ca_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the CA certificates (PEM) that signed Reprieve's certificate; they become caData."
        ),
    ] = None,
    server_name: Annotated[
        str, typer.Option(help="Name in Reprieve's certificate, if the URL has an IP address.")
    ] = "",
    client_certificate: Annotated[str, typer.Option(help="Client certificate on kube-scheduler's machine.")] = "",
    client_key: Annotated[str, typer.Option(help="Private key of the client certificate, on the same machine.")] = "",
    verbs: Annotated[
        str, typer.Option(help="Verbs that are called: filter, prioritize, preempt, bind.")
    ] = "filter,prioritize,preempt",
    managed_resources: Annotated[
        str,
        typer.Option(help="Resources that only Reprieve's plugins count: it is called only for pods that request one."),
    ] = "",
    weight: Annotated[int, typer.Option(min=1, help="Weight of the scores.")] = 1,
    timeout: Annotated[int, typer.Option(min=1, max=30, help="httpTimeout, in seconds.")] = 5,
    full_nodes: Annotated[bool, typer.Option(help="Send whole nodes (nodeCacheCapable: false).")] = False,
    ignorable: Annotated[bool, typer.Option(help="Schedule without Reprieve while it does not answer.")] = True,
    check: Annotated[bool, typer.Option(help="Call Reprieve as kube-scheduler does, and report what is wrong.")] = True,
) -> None:
    """Print the configuration with which kube-scheduler calls Reprieve, and check it.

    The stanza goes to standard output, what `doctor` finds to standard error; the exit code is 1 if kube-scheduler
    would be misled or left without an answer.
    """
    extender = called_over(url, ca_file, verbs)
    if bool(client_certificate) != bool(client_key):
        raise StartUpError("--client-certificate and --client-key go together: give both, or none")
    tls = extender.tls_config
    if tls is not None:
        tls = replace(tls, server_name=server_name, cert_file=client_certificate, key_file=client_key)
    extender = replace(
        extender,
        tls_config=tls,
        weight=weight,
        http_timeout=Duration.of(timeout),
        node_cache_capable=not full_nodes,
        managed_resources=tuple(
            ExtenderManagedResource(name, ignored_by_scheduler=True) for name in managed_resources.split(",") if name
        ),
        ignorable=ignorable,
    )
    document = written(Configuration(extenders=(extender,)))
    stanza = {key: document[key] for key in ("apiVersion", "kind", "extenders")}
    yaml.safe_dump(stanza, sys.stdout, sort_keys=False, default_flow_style=False, width=10_000)
    sys.stdout.flush()
    if check and not _is_well(extender):
        raise typer.Exit(1)


def _is_well(extender: Extender) -> bool:
    """Prints to standard error what is wrong with the extender, and returns whether kube-scheduler can work with it."""
    tls = extender.tls_config
    files = (tls.cert_file, tls.key_file) if tls is not None and tls.cert_file else ()
    elsewhere = next((file for file in files if not Path(file).exists()), None)
    if elsewhere is not None:
        where = f"{elsewhere} is not on this machine; `reprieve doctor --config FILE` checks it there"
        print(f"not checked: {where}", file=sys.stderr)
        return True
    findings = printable(asyncio.run(examined(ExaminedService(extender, protocol_schema))))
    for finding in findings:
        if finding.grade in (Grade.BAD, Grade.WARNING):
            about = finding.verb or "connection"
            print(f"{finding.grade}: {about}: {finding.words}; {finding.advice}", file=sys.stderr)
        elif finding.grade is Grade.SKIPPED:
            print(f"{finding.grade}: {finding.detail}", file=sys.stderr)
    bad = sum(finding.grade is Grade.BAD for finding in findings)
    fine = sum(finding.grade is Grade.OK for finding in findings)
    print(f"checked: {fine} answers are as kube-scheduler needs them, {bad} are not", file=sys.stderr)
    return not bad
