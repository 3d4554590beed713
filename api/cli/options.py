"""Options that several commands take: the fields of a dataclass, which stands for all of them in a command's signature."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, final, get_args, get_origin, get_type_hints


@final
class Only(frozenset[str]):
    """Beside a dataclass in a command's signature: the names of the fields that this command takes as options."""


def with_signature(run: Callable[..., None], parameters: list[inspect.Parameter], help_text: str | None) -> Callable[..., None]:
    """Returns a function for Typer to make a command of.

    Arguments:
        run: takes all parameters by name.
        parameters: each stands for an option or an argument; as Typer reads them, whatever the signature of `run`.
    """

    def command(**given: Any) -> None:
        run(**given)

    command.__doc__ = help_text
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(command)["__signature__"] = inspect.Signature([each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters])
    return command


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """Returns the command with an option for each field of each parameter that is a dataclass."""
    parameters: list[inspect.Parameter] = []
    stands_for: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        annotation = parameter.annotation
        kind, *notes = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(parameter)
            continue
        hints = get_type_hints(kind, include_extras=True)
        wanted = next((note for note in notes if isinstance(note, Only)), hints.keys())
        taken = [field for field in fields(kind) if field.name in wanted]
        stands_for[parameter.name] = (kind, [field.name for field in taken])
        parameters += [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
            for field in taken
        ]

    def run(**given: Any) -> None:
        for name, (kind, names) in stands_for.items():
            given[name] = kind(**{field: given.pop(field) for field in names})
        command(**given)

    return with_signature(run, parameters, command.__doc__)
