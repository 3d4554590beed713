"""Numbers, times and names as people read them, and the environment of templates that show them."""

import re
from datetime import datetime, timedelta
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from extender.answers.parts import PodName
from extender.answers.phrases import for_people
from extender.answers.stories import Preemption
from extender.values.golang.times import moment_of
from extender.values.objects.grouping import SYSTEM_CRITICAL
from extender.values.objects.quantity import QuantityError, milli_value_of, value_of

HIDDEN: Final = "another namespace's pod"

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def environment() -> Environment:
    """Returns an environment for templates, which show each text as a person may read it."""
    return Environment(
        loader=PackageLoader("api.ui"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=lambda value: readable(value) if type(value) is str else value,
    )  # fmt: skip


def readable(text: str) -> str:
    """Returns the text as a person may read it, line by line; see `for_people`."""
    return "\n".join(map(for_people, text.split("\n")))


def pod_words(pod: PodName) -> str:
    """Returns namespace/name, or that the pod is of another namespace."""
    return HIDDEN if pod.hidden else f"{pod.namespace}/{pod.name}"


def breakable(name: str) -> Markup:
    """Returns a camel-case name, such as a plugin's, that may break before its capitals where space is short."""
    return Markup("<wbr>").join(escape(readable(part)) for part in re.split(r"(?<=[a-z])(?=[A-Z])", name))


def shortened(name: str, longest: int = 34) -> str:
    """Returns a name that is too long without its middle: node names often differ at the beginning, and at the end."""
    return name if len(name) <= longest else f"{name[: longest - longest // 3 - 1]}…{name[-(longest // 3) :]}"


def short_taint(taint: str) -> str:
    """Returns `key=value:effect` without the domain of the key, and without an empty value: `unreachable:NoExecute`."""
    key, _, rest = taint.partition("=")
    return f"{key.rpartition('/')[2]}{'' if rest.startswith(':') else '='}{rest}"


def marked(text: str, words: str) -> Markup:
    """Returns the text with those parts marked in which a word of a filter is found."""
    patterns = sorted((re.escape(word) for word in words.split() if not word.startswith("-")), key=len, reverse=True)
    if not patterns:
        return escape(readable(text))
    parts = re.split(f"({'|'.join(patterns)})", text, flags=re.IGNORECASE)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(readable(part)) if place % 2 else escape(readable(part))
        for place, part in enumerate(parts)
    )


def cores(milli: int) -> str:
    """Returns millicores as cores: 1.5, 0.25, 3,800."""
    return f"{milli / 1000:,.3f}".rstrip("0").rstrip(".") if milli % 1000 else f"{milli // 1000:,}"


def size(count: int) -> str:
    """Returns bytes with the unit that leaves up to four digits."""
    amount, unit = float(count), 0
    while abs(amount) >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if amount >= 100 or amount == int(amount) else f"{amount:.1f} {_UNITS[unit]}"


def share(part: int, whole: int) -> int:
    """Returns percent, rounded down; 100 is full, and nothing of nothing is 0."""
    return part * 100 // whole if whole > 0 else 100 * (part > 0)


def seconds_words(seconds: float) -> str:
    """Returns a span of time in the unit that suits it: 0.25 s, 34 s, 12 min, 3.5 h."""
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"


def seconds_short(seconds: float) -> str:
    """Returns a short span of time: 84 µs, 3.2 ms, 1.5 s."""
    for unit, length in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds * 1e6:.0f} µs"


def figure_words(name: str, value: float, *, sign: bool = False) -> str:
    """Returns a figure of a simulation as people read it: shares in percent."""
    form = "+" if sign else ""
    if name.partition(".")[0] in ("allocated", "utilisation", "fragmentation"):
        return f"{value * 100:{form}.1f}%"
    return f"{value:{form},.0f}" if abs(value) >= 100 or value == int(value) else f"{value:{form}.3g}"


def priority_words(priority: int) -> str:
    """Returns a priority in words; those of the system have too many digits to be compared by eye."""
    return f"system {priority - SYSTEM_CRITICAL:+,}" if priority >= SYSTEM_CRITICAL else f"{priority:,}"


def ago(text: str | None, now: datetime) -> str:
    """Returns how long ago a time was, in the largest unit or two: 5s, 3m 20s, 2h 5m, 3d 4h; empty without a time."""
    then = moment_of(text)
    return "" if then is None else span(now - then)


def span(duration: timedelta) -> str:
    """Returns a duration in its largest unit or two."""
    seconds = max(0, int(duration.total_seconds()))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days}d {hours}h" if hours and days < 10 else f"{days}d"
    if hours:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    return (
        f"{minutes}m {seconds % 60}s"
        if minutes and minutes < 10 and seconds % 60
        else f"{minutes}m"
        if minutes
        else f"{seconds}s"
    )


def plural(count: int, word: str) -> str:
    """Returns 1 node, 2,000 nodes, 3 entries."""
    several = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{count:,} {word if count == 1 else several}"


def requested(requests: dict[str, str]) -> tuple[int, int]:
    """Returns (millicores, bytes) of an answer's requests; 0 where there are none."""
    try:
        return milli_value_of(requests.get("cpu", "0")), value_of(requests.get("memory", "0"))
    except QuantityError:
        return 0, 0


def preemption_words(record: Preemption) -> str:
    victims = ", ".join(pod_words(victim.pod) for victim in record.victims) or "no pod"
    return f"{pod_words(record.by)} preempted {victims}" + (f" on {record.node}" if record.node else "")


def percent_of(part: float) -> str:
    """Returns a part of 1 in percent. Only all is 100 %, and only nothing 0 %."""
    return f"{part:.0%}" if part in (0, 1) else f"{min(max(part * 100, 0.1), 99.9):.1f}%"
