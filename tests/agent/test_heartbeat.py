import pytest

from refold.agent._heartbeat import Heartbeat
from tests.agent.kit import Watched


@pytest.mark.parametrize("text", ["heartbeat", "HEARTBEAT", "Health check", "health-check?", " heart beat! "])
def test_health_checks_are_known(tmp_path, text):
    assert Heartbeat(tmp_path).is_health_check(text)


@pytest.mark.parametrize("text", ["write heartbeat.py", "what is a health check", "", "heartbeat_ok please"])
def test_a_message_that_only_speaks_of_one_is_none(tmp_path, text):
    assert not Heartbeat(tmp_path).is_health_check(text)


@pytest.mark.parametrize("notes", [None, "", "# Heartbeat\n\n<!-- nothing yet -->\n"])
def test_without_notes_nobody_is_asked(tmp_path, notes):
    if notes is not None:
        (tmp_path / "HEARTBEAT.md").write_text(notes)
    run = Watched(["never"], heartbeat=Heartbeat(tmp_path))
    assert run.agent.run("heartbeat") == "HEARTBEAT_OK"
    assert not run.client.received


def test_with_notes_the_model_answers_by_them_and_the_conversation_is_left_alone(tmp_path):
    (tmp_path / "HEARTBEAT.md").write_text("Look at the disk.")
    run = Watched(["HEARTBEAT_OK"], heartbeat=Heartbeat(tmp_path))
    assert run.agent.run("heartbeat") == "HEARTBEAT_OK"
    assert "Look at the disk." in run.client.received[0].system or "Look at the disk." in str(
        run.client.received[0].body
    )
    assert run.agent.originals == []
