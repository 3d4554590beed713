"""Signatures of commands, made from declarations: one parameter of a command may stand for several options."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, final, get_args, get_origin, get_type_hints


@final
@dataclass(frozen=True, slots=True)
class Options:
    """Annotates a parameter that stands for several options."""

    parameters: Sequence[inspect.Parameter]
    """The options, each annotated as Typer reads it."""
    make: Callable[..., object]
    """Makes the parameter's value from theirs, given by name."""

    @classmethod
    def of(cls, kind: type[Any], only: Sequence[str] = ()) -> "Options":
        """Returns an option for each field of a dataclass, or only for these fields."""
        hints = get_type_hints(kind, include_extras=True)
        return cls(
            [
                option(each.name, hints[each.name], each.default)
                for each in fields(kind)
                if each.name in (only or hints)
            ],
            kind,
        )


def option(name: str, annotation: Any, default: object) -> inspect.Parameter:
    """Returns a parameter that is an option."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """Returns the command with a signature in which every parameter that stands for options is replaced by them."""
    parameters: list[inspect.Parameter] = []
    stand_ins: dict[str, Options] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        notes = get_args(parameter.annotation)[1:] if get_origin(parameter.annotation) is Annotated else ()
        options = next((note for note in notes if isinstance(note, Options)), None)
        if options is None:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            parameters += options.parameters
            stand_ins[parameter.name] = options

    def run(**given: object) -> None:
        for name, options in stand_ins.items():
            given[name] = options.make(**{each.name: given.pop(each.name) for each in options.parameters})
        command(**given)

    run.__doc__ = command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run
