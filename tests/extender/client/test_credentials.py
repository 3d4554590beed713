from pathlib import Path

import pytest

from extender.testing import virtual_time
from extender.values.targets.target import (
    REREAD_SECONDS,
    Credentials,
    CredentialsError,
    Fixed,
    Target,
    TokenFile,
    basic_auth,
    token,
)


def authorization(credentials: Credentials, now: float = 0.0) -> str | None:
    return virtual_time.run(credentials.identity(now)).authorization


def test_authorization_header_is_absent_bearer_or_basic_by_kind_of_credentials():
    assert authorization(Fixed()) is None
    assert authorization(token(" abc\n")) == "Bearer abc"
    assert authorization(basic_auth("jäger", "pw")) == "Basic asOkZ2VyOnB3"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


def rotate(path: Path) -> None:
    path.write_text("second")


def test_a_token_file_is_read_again_within_a_minute(file: Path):
    credentials = TokenFile(file)
    headers = [authorization(credentials, 0)]
    rotate(file)
    headers += [authorization(credentials, now) for now in (1, REREAD_SECONDS)]

    assert REREAD_SECONDS <= 60
    assert headers == ["Bearer first", "Bearer first", "Bearer second"]


async def test_a_refused_token_is_read_again_at_once(file: Path):
    credentials = TokenFile(file)
    refused = await credentials.identity(0)
    rotate(file)
    credentials.invalidate(refused)
    header = (await credentials.identity(1)).authorization

    assert header == "Bearer second"


async def test_a_token_that_was_replaced_already_is_not_read_once_more(file: Path):
    credentials = TokenFile(file)
    refused = await credentials.identity(0)
    await credentials.identity(REREAD_SECONDS)
    rotate(file)
    credentials.invalidate(refused)
    header = (await credentials.identity(REREAD_SECONDS + 1)).authorization

    assert header == "Bearer first"


@pytest.mark.parametrize(
    "ruin", [Path.unlink, lambda path: path.write_text(""), lambda path: path.write_bytes(b"\xff")]
)
def test_the_last_token_stays_while_its_file_can_not_be_read(ruin, file: Path, caplog: pytest.LogCaptureFixture):
    credentials = TokenFile(file)
    authorization(credentials, 0)
    ruin(file)

    assert authorization(credentials, REREAD_SECONDS) == "Bearer first"
    assert "The last token stays in use" in caplog.text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "token cannot be read .No such file or directory.: check that it is mounted"),
        (b"", "token is empty"),
        (b"\xff", "it is no text"),
        (b"canary\r\nX-Remote-User: admin", "no HTTP header may hold"),
        ("canäry".encode(), "no HTTP header may hold"),
    ],
)
def test_unusable_token_file_is_reported_in_one_line_without_the_token(
    content: bytes | None, words: str, tmp_path: Path
):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(CredentialsError, match=words) as caught:
        authorization(TokenFile(file))

    assert "\n" not in str(caught.value)
    assert "can" + "ary" not in str(caught.value)


def test_secrets_are_not_shown(file: Path):
    file.write_text("canary")
    from_file = TokenFile(file)
    authorization(from_file)

    texts = [
        repr(Target("https://k8s", credentials=credentials))
        for credentials in (token("canary"), basic_auth("canary", "canary"), from_file)
    ]

    assert not [text for text in texts if "canary" in text]
