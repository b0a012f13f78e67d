from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from refold import policies
from refold.core.policy import Policy
from refold.errors import UnknownPolicy

if TYPE_CHECKING:
    from pathlib import Path

SIX = {"claude-code", "neurolink", "opal", "refold", "vibe", "wolffish"}


def test_the_policies_are_the_files_of_the_folder() -> None:
    assert set(policies.names()) >= SIX
    assert list(policies.names()) == sorted(policies.names())


@pytest.mark.parametrize("name", sorted(SIX))
def test_a_policy_is_found_by_its_name_and_has_one_sentence_about_itself(name: str) -> None:
    policy = policies.find(name)
    assert policy.name == name
    assert policy.summary.endswith(".")


@pytest.mark.parametrize("name", sorted(SIX))
def test_a_policy_prints_and_compares_as_a_value(name: str) -> None:
    policy = policies.find(name)
    assert " at 0x" not in repr(policy)
    assert policy.fingerprint == policies.find(name).fingerprint
    assert hash(policy) == hash(policies.find(name))


def test_an_unknown_name_is_refused_with_all_names_and_the_nearest() -> None:
    with pytest.raises(
        UnknownPolicy, match=r"no policy 'wolfish'; did you mean wolffish\?; there are .*opal"
    ) as caught:
        policies.find("wolfish")
    for name in SIX:
        assert name in str(caught.value)


def test_a_name_that_could_be_a_private_module_is_refused() -> None:
    for name in ("__init__", "", "core.policy", "../x"):
        with pytest.raises(UnknownPolicy):
            policies.find(name)


def test_a_path_names_a_file_with_a_policy(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from msgspec.structs import replace\nfrom refold.policies.opal import POLICY as OPAL\n"
        "POLICY = replace(OPAL, name='mine')\n"
    )
    policy = policies.find(str(file))
    assert isinstance(policy, Policy)
    assert policy.name == "mine"


def test_a_file_without_a_policy_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("POLICY = 3\n")
    with pytest.raises(UnknownPolicy, match="has no POLICY"):
        policies.find(str(tmp_path / "empty.py"))
    with pytest.raises(UnknownPolicy, match="there is no file"):
        policies.find(str(tmp_path / "gone.py"))


def test_importing_the_policies_does_not_look_for_entry_points() -> None:
    code = (
        "import sys, refold.policies as p; [p.find(n) for n in p.names()]; print('importlib.metadata' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_an_entry_point_may_bring_a_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    entry = metadata.EntryPoint("theirs", "refold.policies.vibe:POLICY", "refold.policies")
    whole = metadata.EntryPoint("module", "refold.policies.opal", "refold.policies")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry, whole] if group == "refold.policies" else [])
    assert policies.find("theirs") == policies.find("vibe")
    assert policies.find("module") == policies.find("opal")
