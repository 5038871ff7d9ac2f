"""Workers that are forked from a process which has loaded what they need."""

import os
import signal
import subprocess
import sys

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.processes import call_in_child
from tests.command import WITH_TESTS

SCRIPT = """
import os
import sys
import time

from menagerie.envs.core import processes

def loaded(name):
    return name in sys.modules

if __name__ == "__main__":
    processes.CAN_SERVE = sys.argv[1] == "serve"
    processes.serve(["colorsys"])
    print(processes.call_in_child(loaded, "colorsys"), loaded("colorsys"))
"""


def refuse():
    raise UserError("no such object")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    return [sys.executable, str(tmp_path / "script.py")]


def test_child_returns_results_and_raises_errors():
    assert call_in_child(divmod, 7, 2) == (3, 1)
    with pytest.raises(UserError, match="no such object"):
        call_in_child(refuse)


def test_killed_child_is_one_error():
    with pytest.raises(UserError, match="the process of die has ended: killed, or out of memory"):
        call_in_child(die)


@pytest.mark.parametrize(("how", "expected"), [("serve", "True False"), ("spawn", "False False")])
def test_server_loads_modules_for_its_workers(script, how, expected):
    """And the command itself loads nothing; where there can be no server, workers load for themselves."""
    done = subprocess.run([*script, how], env=WITH_TESTS, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_ctrl_c_does_not_reach_the_loading_server(script, tmp_path):
    """The server gets no SIGINT from the terminal: it prints nothing."""
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(2)\n")
    text = SCRIPT.replace('["colorsys"]', '["slow"]').replace(
        "    print(", "    time.sleep(0.5)\n    os.killpg(os.getpgrp(), 2)\n    print("
    )
    (tmp_path / "script.py").write_text(text)
    environment = WITH_TESTS | {"PYTHONPATH": f"{WITH_TESTS['PYTHONPATH']}:{tmp_path}"}
    done = subprocess.run(
        [*script, "serve"], env=environment, capture_output=True, text=True, start_new_session=True, check=False
    )
    assert done.stderr.count("KeyboardInterrupt") == 1
    assert done.stderr.count("Traceback") == 1


def test_script_from_standard_input_has_workers(tmp_path):
    imports = "import os\nfrom menagerie.envs.core.processes import call_in_child\n"
    script = imports + "print(call_in_child(os.path.basename, 'a/b'))"
    done = subprocess.run([sys.executable, "-"], cwd=tmp_path, input=script, capture_output=True, text=True, check=True)
    assert done.stdout == "b\n"
