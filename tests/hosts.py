"""Two hosts on this machine: network namespaces with a cable between them, each with its own name."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpi import Flavour

AGENT = """#!/bin/sh
# What an mpiexec calls in place of ssh: options, a host, a command.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
"""


def ip(*words: str) -> None:
    """One command of `ip`."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@contextmanager
def two_hosts() -> Iterator[tuple[str, str]]:
    """Their names; skips the test where this user may not make them."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "unshare"))):
        pytest.skip("hosts are emulated by `ip netns` and `unshare`, which need root")
    names = tuple(f"pt{os.getpid()}{letter}" for letter in "ab")
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "wire", "netns", names[0], "type", "veth", "peer", "name", "wire", "netns", names[1])
    except subprocess.CalledProcessError as refused:
        _remove(names)
        pytest.skip(f"hosts cannot be emulated here: {refused.stderr.strip()}")
    try:
        for number, name in enumerate(names, 1):
            ip("-n", name, "addr", "add", f"10.213.0.{number}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names[0], names[1]
    finally:
        _remove(names)


def _remove(names: tuple[str, ...]) -> None:
    for name in names:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def on_hosts(library: str, hosts: tuple[str, str], tmp: Path) -> Flavour:
    """An MPI with half of its ranks on each host."""
    agent = tmp / "agent.sh"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    before = ("ip", "netns", "exec", hosts[0], "unshare", "--uts", "sh", "-c", f'hostname {hosts[0]}; exec "$@"', "sh")
    both = ",".join(f"{name}:2" for name in hosts)
    if library == "mpich":
        after = ("-launcher", "ssh", "-launcher-exec", str(agent), "-hosts", both, "-iface", "wire")
        return Flavour("mpich-hosts", library, {"UCX_LOG_LEVEL": "error"}, before, after)
    wire = "10.213.0.0/24"
    told = {
        "PRTE_MCA_plm_ssh_agent": str(agent),
        "PRTE_MCA_prte_if_include": wire,
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_btl_tcp_if_include": wire,
    }
    return Flavour("openmpi-hosts", library, told, before, ("--map-by", "ppr:2:node:oversubscribe", "-host", both))
