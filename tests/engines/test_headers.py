import pytest

from engines.errors import EngineEnvironmentError
from engines.headers import header_values


def test_values_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_TOKEN", "abc\n")
    monkeypatch.setenv("BASIC_SECRET", "Basic dXNlcg==")
    names = {"Authorization": "TEAM_TOKEN", "X-Key": "TEAM_TOKEN", "Proxy-Authorization": "BASIC_SECRET"}
    assert header_values(names) == {
        "Authorization": "Bearer abc",
        "X-Key": "abc",
        "Proxy-Authorization": "Basic dXNlcg==",
    }
    assert header_values({"authorization": "BASIC_SECRET"}) == {"authorization": "Basic dXNlcg=="}


@pytest.mark.parametrize("value", ["", "two\nlines", "kn\u00f6"])
def test_what_cannot_be_sent_names_the_header_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("TEAM_TOKEN", value)
    with pytest.raises(EngineEnvironmentError, match=r"engine\.flags\.headers\.X-Key") as caught:
        header_values({"X-Key": "TEAM_TOKEN"})
    assert "TEAM_TOKEN" not in str(caught.value)
    assert value == "" or value not in str(caught.value)
