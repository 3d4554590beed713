"""Settings come from the environment, flags win, and what cannot be is said by its name."""

from pathlib import Path

import pytest

from api.settings.settings import DECLARATIONS, read_settings
from reprieve.errors import StartUpError


def test_without_anything_the_example_cluster_is_served_on_this_machine_only() -> None:
    settings = read_settings({})

    assert (settings.host, settings.prefix) == ("127.0.0.1", "/extender")
    assert (settings.state, settings.kubeconfig, settings.config) == (None, None, None)


def test_the_environment_sets_and_flags_win() -> None:
    environment = {
        "REPRIEVE_PORT": "1234",
        "REPRIEVE_STATE": "/a",
        "REPRIEVE_FULL_NODES": "false",
        "REPRIEVE_HOST": "",
        "OTHER": "x",
    }

    settings = read_settings(environment, port=None, state=Path("/b"))

    assert (settings.port, settings.state, settings.full_nodes, settings.host) == (1234, Path("/b"), False, "127.0.0.1")
    assert settings.body_limit == settings.max_body


@pytest.mark.parametrize(("prefix", "path"), [("", ""), ("/", ""), ("x", "/x"), ("/a/b/", "/a/b")])
def test_a_prefix_has_one_slash_in_front(prefix: str, path: str) -> None:
    assert read_settings({}, prefix=prefix).prefix == path


@pytest.mark.parametrize(
    ("variables", "flags", "why"),
    [
        ({"REPRIEVE_PORT": "http"}, {}, "REPRIEVE_PORT: must be a whole number, at least 0, at most 65535"),
        ({"REPRIEVE_BODY_SECONDS": "0"}, {}, "REPRIEVE_BODY_SECONDS: must be a number, above 0, at most 3600"),
        ({"REPRIEVE_PORT": "1"}, {"port": 70_000}, "--port: "),
        ({"REPRIEVE_SCHEDULE": "maybe"}, {}, "REPRIEVE_SCHEDULE: must be true or false"),
        ({"REPRIEVE_LOGGING_FORMAT": "xml"}, {}, "REPRIEVE_LOGGING_FORMAT: must be one of text, json"),
        ({"REPRIEVE_PORT": "1", "REPRIEVE_HOST": "h"}, {"kube_api_qps": "x"}, "--kube-api-qps: must be a number"),
        ({}, {"prefix": "/a b"}, "--prefix: "),
        ({}, {"prefix": "/{x}"}, "--prefix: "),
    ],
)
def test_invalid_setting_is_refused_by_its_name(variables: dict[str, str], flags: dict[str, object], why: str) -> None:
    with pytest.raises(StartUpError) as refused:
        read_settings(variables, **flags)

    assert str(refused.value).startswith(why)


@pytest.mark.parametrize(
    ("variables", "elects"),
    [({}, None), ({"REPRIEVE_LEADER_ELECT": "true"}, True), ({"REPRIEVE_LEADER_ELECT": "false"}, False)],
)
def test_whether_a_leader_is_elected_is_left_to_the_configuration_unless_told(
    variables: dict[str, str], elects: bool | None
) -> None:
    assert read_settings(variables).leader_elect is elects


def test_help_of_a_setting_is_one_line_without_a_full_stop() -> None:
    helps = [setting.help for setting in DECLARATIONS.values()]

    assert [text for text in helps if "\n" in text or text.endswith((".", " ")) or not text] == []
