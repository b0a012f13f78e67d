import pytest

from refold._condense.call_facts import arguments_of, is_shell, workdir, writes
from refold._condense.call_outline import call_line
from refold._condense.digest.task_lists import task_list
from refold.core.messages import ToolCall
from refold.testing import talk


def call(script):
    return ToolCall("c1", "exec", script, kind="custom")


def test_a_command_in_a_script_is_the_one_that_the_call_runs():
    run = call('const r = await tools.exec_command({"cmd":"git status -sb","workdir":"/w/app"}); text(r.output)\n')
    assert (is_shell(run), call_line(run), workdir(run)) == (True, "exec `git status -sb`", "/w/app")
    plain = call("const r = await tools.exec_command({...common, cmd: `ls ${a}`, workdir: '/w',}); text(r.output)")
    assert arguments_of(plain) == {"cmd": "ls ${a}", "workdir": "/w"}


def test_several_commands_in_a_script_are_one_line_of_commands():
    both = call('await Promise.all([tools.exec_command({cmd:"npm test"}), tools.exec_command({cmd:"npm run build"})])')
    assert arguments_of(both)["cmd"] == "npm test; npm run build"


@pytest.mark.parametrize("given", ["{}", "const patch = {};\ntext(await tools.apply_patch(patch));"])
def test_a_patch_in_a_script_changes_its_files(given):
    patch = '"*** Begin Patch\\n*** Update File: src/a.ts\\n@@\\n-old(\\"x\\")\\n+new()\\n*** End Patch"'
    script = given.format(patch) if "tools" in given else f"text(await tools.apply_patch({patch}))"
    assert writes(call(script)) == ("src/a.ts",)


def test_a_list_of_tasks_in_a_script_is_read():
    steps = '[{step:"Add it","status":"completed"},{step:"Test it","status":"in_progress"}]'
    transcript = talk("u: go", "a: x | exec(list) as c1", "t: c1 = ok")
    message = transcript.messages[1]
    script = call(f"const r = await tools.update_plan({{plan:{steps}}}); text(r)")
    listed = task_list([type(message)(message.id, "assistant", (script,))])
    assert (listed.done, listed.remaining) == (("Add it",), ("Test it (in_progress)",))


@pytest.mark.parametrize("script", ["const x = 1;", "tools.exec_command(args)", "tools.wait({a: f(1)})", "tools.x({"])
def test_a_script_that_gives_nothing_in_plain_words_has_no_arguments(script):
    assert arguments_of(call(script)) == {}
