"""A Slurm of one node, which the tests start as the user who runs them, and stop."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

DAEMONS = ("munged", "slurmctld", "slurmd")
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
LACKING = [name for name in (*DAEMONS, "sbatch") if not shutil.which(name, path=PATH)]
CONFIG = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
KillWait=10
MaxArraySize=4
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=tests Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    """A Slurm that takes jobs from this process and its children."""
    if LACKING:
        pytest.skip(f"no {LACKING[0]} here (Debian: apt-get install slurm-wlm munge)")
    folder = tmp_path_factory.mktemp("slurm")
    configure(folder)
    before = {name: os.environ.get(name) for name in ("SLURM_CONF", "PATH")}
    os.environ |= {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": PATH}
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    socket_file = folder / "munge.socket"
    daemons = [start(folder, "munged", "--foreground", "--force", f"--socket={socket_file}", *munge)]
    try:
        wait_for(socket_file.exists, daemons, folder)
        daemons += [start(folder, name, "-D") for name in DAEMONS[1:]]
        wait_for(lambda: "idle" in output_of("sinfo", "--noheader", "--format=%T"), daemons, folder)
        yield folder
        output_of("scancel", f"--user={getpass.getuser()}")
        wait_for(lambda: not output_of("squeue", "--noheader"), daemons, folder)
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(30)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def configure(folder: Path) -> None:
    """Write Slurm's configuration and munge's key."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        ports = {"controller": one.getsockname()[1], "daemon": other.getsockname()[1]}
    host = socket.gethostname().partition(".")[0]
    (folder / "slurm.conf").write_text(CONFIG.format(host=host, user=getpass.getuser(), folder=folder, **ports))
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)


def start(folder: Path, *command: str) -> subprocess.Popen:
    """A daemon in the foreground; what it prints goes to a file."""
    with (folder / f"{command[0]}.out").open("w") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)


def output_of(*command: str) -> str:
    """What a command of Slurm prints."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def wait_for(ready, daemons: list[subprocess.Popen], folder: Path) -> None:
    """Wait until `ready()`; fails with what was printed if a daemon ends, or after 30 seconds."""
    end = time.monotonic() + 30
    while not ready():
        if time.monotonic() > end or any(daemon.poll() is not None for daemon in daemons):
            pytest.fail("\n".join(file.read_text(errors="replace") for file in folder.glob("*.out")))
        time.sleep(0.1)
