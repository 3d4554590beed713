"""Plays as Parquet, for tools that compute with tables: decisions, pods, what plots are made of, and figures."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, final

from extender import how_to_install
from extender.values.reasons import InputError, in_one_line
from reprieve.lab.simulation.observation import Fate, SimulatedDecision
from reprieve.lab.simulation.playing import Played
from reprieve.lab.simulation.report import Sample, figures_of

_PLAY: Final = {"workload": "string", "configuration": "string", "seed": "int64"}
_ARROW_TYPES: Final = {str: "string", int: "int64", float: "float64", bool: "bool_", float | None: "float64"}
_USAGE: Final = {"time": "float64", "resource": "string", "allocated": "float64", "fragmentation": "float64"}
_FIGURES: Final = {"figure": "string", "value": "float64"}


def _columns(kind: type) -> dict[str, str]:
    return {column.name: _ARROW_TYPES[column.type] for column in fields(kind)}  # type: ignore[index]


_SAMPLES: Final = {"time": "float64", **dict.fromkeys(("attempts", "arrived", "placed", "waiting", "running"), "int64")}
TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "decisions": _PLAY | _columns(SimulatedDecision),
    "pods": _PLAY | _columns(Fate),
    "samples": _PLAY | _SAMPLES,
    "usage": _PLAY | _USAGE,
    "figures": _PLAY | _FIGURES,
}
"""Name of the file -> the types of its columns. Each row names the play that it is of."""


class ExportError(InputError):
    """Nothing can be exported. The message is one line."""


@final
class PlayExport:
    """The files of an export. State: the open writers."""

    def __init__(self, writers: Mapping[str, Any], schemas: Mapping[str, Any]) -> None:
        """Takes pyarrow's writers and schemas, by the name of the table."""
        self._writers = writers
        self._schemas = schemas

    def add(self, configuration: str, played: Played) -> None:
        """Writes a play. Raises ExportError."""
        report = played.report
        play = {"workload": report.workload, "configuration": configuration, "seed": report.seed}
        self._write("decisions", play, [asdict(decision) for decision in played.decisions])
        self._write("pods", play, [asdict(fate) for fate in played.fates])
        self._write("samples", play, [{name: getattr(sample, name) for name in _SAMPLES} for sample in report.samples])
        self._write("usage", play, [row for sample in report.samples for row in _usage(sample)])
        self._write(
            "figures", play, [{"figure": name, "value": float(figure(report))} for name, figure in figures_of(report)]
        )

    def _write(self, name: str, play: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
        import pyarrow  # noqa: PLC0415 - an extra

        try:
            self._writers[name].write_table(
                pyarrow.Table.from_pylist([{**play, **row} for row in rows], schema=self._schemas[name])
            )
        except OSError as exc:
            raise ExportError(f"--export: {name}.parquet: {in_one_line(exc)}") from exc


def _usage(sample: Sample) -> Iterator[dict[str, Any]]:
    for resource, share in sample.allocated.items():
        yield {
            "time": sample.time,
            "resource": resource,
            "allocated": share,
            "fragmentation": sample.fragmentation.get(resource),
        }


@contextmanager
def exported_to(folder: Path) -> Iterator[PlayExport]:
    """Yields an export into this folder, complete at the end of the block. Raises ExportError, also without pyarrow."""
    try:
        from pyarrow.parquet import ParquetWriter  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise ExportError(f"--export needs pyarrow: {how_to_install('export')}") from exc
    schemas = {name: _schema(columns) for name, columns in TABLES.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            writers = {
                name: opened.enter_context(ParquetWriter(folder / f"{name}.parquet", schema))
                for name, schema in schemas.items()
            }
            yield PlayExport(writers, schemas)
    except OSError as exc:
        raise ExportError(f"--export {folder}: {in_one_line(exc)}") from exc


def _schema(columns: Mapping[str, str]) -> Any:
    import pyarrow  # noqa: PLC0415 - an extra

    return pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in columns.items()])
