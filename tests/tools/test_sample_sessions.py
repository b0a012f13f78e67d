import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from refold import _samples, api
from refold._samples import SampleConversation
from refold.testing.provider._mails import BATCHES
from tools.sample_sessions import conversations, sized
from tools.sample_sessions.examples import write_examples

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"^ *\d+\t", re.M)


def example(name: str) -> SampleConversation:
    return next(each for each in conversations() if each.name == name)


def blocks(found: SampleConversation, kind: str) -> list[dict]:
    return [block for message in found.messages for block in message["content"] if block["type"] == kind]


def text_of(result: dict) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)


def test_there_are_three_conversations_of_two_formats():
    assert [(each.name, each.format) for each in conversations()] == [
        ("long-session", "anthropic"),
        ("small", "openai-chat"),
        ("mail", "openai-chat"),
    ]


def test_the_committed_files_are_what_the_generator_writes(tmp_path):
    for path in write_examples(tmp_path):
        assert path.read_bytes() == (ROOT / "examples" / path.name).read_bytes()


def test_another_process_with_another_hash_seed_makes_the_same_conversations():
    code = (
        "import hashlib, msgspec; from tools.sample_sessions import conversations;"
        "print(hashlib.sha256(msgspec.json.encode([each.messages for each in conversations()])).hexdigest())"
    )
    env = {"PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    here = hashlib.sha256(msgspec.json.encode([each.messages for each in conversations()])).hexdigest()
    assert done.stdout.strip() == here


@pytest.mark.parametrize("name", ["long-session", "small", "mail"])
def test_every_conversation_keeps_its_provider_s_rules(name):
    found = example(name)
    assert api.violations(found.messages, format=found.format) == ()


@pytest.mark.parametrize(
    ("name", "low", "high"), [("long-session", 500_000, 600_000), ("small", 1_000, 4_000), ("mail", 80_000, 130_000)]
)
def test_every_conversation_has_its_size(name, low, high):
    found = example(name)
    tokens = api.count(found.messages, format=found.format, system=found.system, tools=found.tools)
    assert low <= tokens <= high


def test_standing_constraints_are_said_once_by_the_user():
    first = example("long-session").messages[0]["content"][-1]["text"]
    for rule in ("Never touch anything under migrations/", "Use only the standard library", "integer cents"):
        assert rule in first
    later = [block["text"] for message in example("long-session").messages[1:] for block in said(message)]
    assert any("every error message with the id" in text for text in later)


def said(message: dict) -> list[dict]:
    return [block for block in message["content"] if block["type"] == "text" and message["role"] == "user"]


def test_the_agent_never_changes_a_migration():
    changed = [
        block["input"] for block in blocks(example("long-session"), "tool_use") if block["name"] in ("Edit", "Write")
    ]
    assert changed
    assert not [each["file_path"] for each in changed if "/migrations/" in each["file_path"]]


def test_what_an_edit_replaces_was_read_from_that_file_before():
    shown: dict[str, str] = {}
    paths: dict[str, str] = {}
    edits = 0
    for message in example("long-session").messages:
        for block in message["content"]:
            match block:
                case {"type": "tool_use", "name": "Read", "id": id, "input": {"file_path": path}}:
                    paths[id] = path
                case {"type": "tool_use", "name": "Edit", "input": {"file_path": path, "old_string": old}}:
                    edits += 1
                    assert old.strip("\n") in shown[path]
                case {"type": "tool_result", "tool_use_id": id} if id in paths:
                    shown[paths[id]] = shown.get(paths[id], "") + "\n" + NUMBER.sub("", text_of(block))
    assert edits > 50


def test_the_session_has_errors_pictures_thinking_parallel_calls_and_cache_marks():
    found = example("long-session")
    results = blocks(found, "tool_result")
    assert sum(bool(each.get("is_error")) for each in results) > 20
    assert any(isinstance(each["content"], list) for each in results)
    assert all(len(each["signature"]) > 200 for each in blocks(found, "thinking"))
    calls = [sum(block["type"] == "tool_use" for block in each["content"]) for each in found.messages]
    assert max(calls) >= 3
    assert any("cache_control" in each for each in results)


def test_the_pixels_of_a_picture_can_be_read_off_its_header():
    from refold._text.image_size import base64_image_size

    found = example("long-session")
    inner = [
        block for each in blocks(found, "tool_result") if isinstance(each["content"], list) for block in each["content"]
    ]
    pictures = [block for block in [*blocks(found, "image"), *inner] if block["type"] == "image"]
    assert {base64_image_size(each["source"]["data"]) for each in pictures} == {(1440, 900), (1280, 720), (390, 844)}


def test_an_id_of_the_first_task_comes_back_in_the_last_quarter():
    messages = example("long-session").messages
    for id in ("rfd_Qm4Xv81TzA", "req_7c41e09ab2d8"):
        assert id in json.dumps(messages[0])
        assert any(id in block["text"] for each in messages[len(messages) * 3 // 4 :] for block in said(each))


def test_a_file_is_read_again_and_in_parts():
    reads = [block["input"] for block in blocks(example("long-session"), "tool_use") if block["name"] == "Read"]
    paths = [each["file_path"] for each in reads]
    assert len(set(paths)) < len(paths)
    assert any("limit" in each for each in reads)


def test_no_two_commands_print_the_same_long_output():
    found = example("long-session")
    commands = {block["id"] for block in blocks(found, "tool_use") if block["name"] == "Bash"}
    printed = [text_of(each) for each in blocks(found, "tool_result") if each["tool_use_id"] in commands]
    long = [text for text in printed if len(text) > 1_500]
    assert len(long) > 50
    assert len(set(long)) == len(long)


def test_the_mail_task_reads_forty_one_messages_in_three_batches():
    batches = [
        [call["id"] for call in each["tool_calls"] if call["function"]["name"] == "mail_read"]
        for each in example("mail").messages
        if each.get("tool_calls")
    ]
    assert tuple(len(batch) for batch in batches if batch) == BATCHES == (15, 15, 11)
    bodies = [each["content"] for each in example("mail").messages if each["role"] == "tool"][1:]
    assert len(set(bodies)) == 41
    assert min(map(len, bodies)) > 5_000


@pytest.mark.parametrize("tokens", [5_000, 50_000, 200_000])
def test_a_sized_conversation_has_its_size_within_two_percent(tokens):
    messages = sized(tokens)
    assert abs(api.count(messages, format="openai-chat") - tokens) < max(tokens * 0.02, 2_500)
    assert api.violations(messages, format="openai-chat") == ()
    assert messages == sized(tokens)
    assert messages != sized(tokens, seed=2)


def test_what_the_demo_reads_is_what_the_generator_makes():
    assert list(_samples.conversations()) == conversations()


def test_an_example_is_a_request_body():
    body = json.loads((ROOT / "examples" / "long-session.json").read_bytes())
    assert list(body) == ["system", "tools", "messages"]
