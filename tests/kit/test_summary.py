"""What a run says of tests that were not run: tests/kit/summary.py."""

from typing import Final

import pytest

pytest_plugins = ["pytester"]

TESTS: Final = """
    import pytest

    @pytest.mark.parametrize("number", range(3))
    def test_of_kubectl(number):
        pytest.skip("kubectl is not installed")

    @pytest.mark.skipif(True, reason="there is no Chromium, and it could not be installed: apt-get install chromium")
    def test_of_the_page():
        pass

    @pytest.mark.xfail
    def test_of_a_fault():
        assert False

    def test_of_all_else():
        pass
"""


def outcome(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, required: str) -> pytest.RunResult:
    monkeypatch.setenv("REQUIRE", required)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(TESTS)
    return pytester.runpytest_inprocess("-p", "tests.kit.summary", "-p", "no:cacheprovider")


def test_a_run_says_how_many_tests_were_not_run_and_why(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = outcome(pytester, monkeypatch, "")

    result.assert_outcomes(passed=1, skipped=4, xfailed=1)
    result.stdout.fnmatch_lines(["not run: 4 (kubectl is not installed 3, there is no Chromium 1)"])


@pytest.mark.parametrize(
    ("required", "failed", "errors"),
    [("kubectl", 3, 0), ("browser", 0, 1), ("browser,kubectl", 3, 1), ("apiserver", 0, 0)],
)
def test_what_is_required_and_missing_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, required: str, failed: int, errors: int
) -> None:
    """A mark skips a test before it begins, which is an error of pytest's, not a failure."""
    result = outcome(pytester, monkeypatch, required)

    result.assert_outcomes(passed=1, skipped=4 - failed - errors, failed=failed, errors=errors, xfailed=1)


def test_what_cannot_be_required_is_refused(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = outcome(pytester, monkeypatch, "chrome")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*REQUIRE may name browser, kubectl, apiserver, not chrome"])
