"""`python -m ptokit.comm -n 4 script.py`: run a script on ranks of this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import BinaryIO

import click

from ptokit.comm.attend import Child, attend, ends_with_parent, what_was_told
from ptokit.comm.boards import Boards
from ptokit.comm.faults import Peer
from ptokit.comm.segments import nameless_file
from ptokit.comm.start import PLACE_NAME, Place
from ptokit.comm.transport import Layout, default_timeout
from ptokit.comm.worlds import MOST_RANKS
from ptokit.errors import PtoError, PtoValueError


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    command: Sequence[str]
    size: int
    timeout: float
    tag: bool


@click.command(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    }
)
@click.option("-n", "size", type=click.IntRange(1, MOST_RANKS), required=True, help="How many ranks.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="Seconds after which a wait ends [30].")
@click.option("--tag", is_flag=True, help="Begin every line of output with its rank.")
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the name of a module.")
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(size: int, timeout: float | None, tag: bool, is_module: bool, script: str, args: tuple[str, ...]) -> None:
    """Run SCRIPT on ranks of this machine; in it, pto.comm.world() is the world.

    The exit code is 0 where every rank's is, and that of the first rank that failed where one did. When a rank fails,
    the others are told which one and why; whatever still runs after the timeout is ended. Nothing is left behind.

    \b
    Examples:
      python -m ptokit.comm -n 4 train.py --epochs 3
      python -m ptokit.comm -n 2 --tag --timeout 5 train.py
      python -m ptokit.comm -n 2 -m package.module
    """
    if not is_module and not Path(script).exists():
        raise PtoValueError(f"there is no script {script}; a module is started by -m {Path(script).stem}")
    whole = [sys.executable, *(["-m"] if is_module else []), script, *args]
    sys.exit(run(Job(whole, size, timeout or default_timeout(), tag)))


def run(job: Job) -> int:
    """Start the ranks, look after them, and say what became of them; the exit code."""
    fd = nameless_file(Layout(job.size).nbytes * job.size, f"process {os.getpid()}, which starts the ranks,")
    boards = Boards.of_file(job.size, fd)
    started: list[Started] = []
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        for number in range(job.size):
            started.append(_start(job, number, fd, boards))  # noqa: PERF401 - those before a failure have to be ended
        for one in started:
            one.copy()
        attend(boards, [one.child for one in started], job.timeout)
    except KeyboardInterrupt:
        click.echo(f"ptokit.comm: interrupted; all {job.size} ranks were ended", err=True)
        return 128 + signal.SIGINT
    finally:
        os.close(fd)
        for one in started:
            one.is_over()
    return _verdict(boards, [one.child for one in started])


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@dataclass(frozen=True)
class Started:
    """A rank's process, and who copies what it prints."""

    child: Child
    process: subprocess.Popen[bytes]
    copiers: list[threading.Thread] = field(default_factory=list)

    def copy(self) -> None:
        """Begin to copy what it prints, if it is to be tagged; only when every process has been forked."""
        pairs = ((self.process.stdout, sys.stdout.buffer), (self.process.stderr, sys.stderr.buffer))
        for back, to in pairs:
            if back:
                copier = threading.Thread(target=_copy, args=(self.child.peer.rank, back, to), daemon=True)
                self.copiers.append(copier)
                copier.start()

    def is_over(self) -> None:
        """The process has been waited for already."""
        self.process.returncode = self.child.code or 0
        for copier in self.copiers:
            copier.join(timeout=1)  # a process that the rank has left behind may still hold its output


def _start(job: Job, number: int, fd: int, boards: Boards) -> Started:
    place = Place(fd, os.fstat(fd).st_ino, number, job.size, job.timeout)
    output = subprocess.PIPE if job.tag else None
    process = subprocess.Popen(
        job.command,
        stdin=None if number == 0 else subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env={**os.environ, PLACE_NAME: str(place)},
        pass_fds=(fd,),
        preexec_fn=ends_with_parent,  # noqa: PLW1509 - there are no threads yet
    )
    boards.store(number, Layout.PID, process.pid)
    return Started(Child(Peer(number, socket.gethostname(), process.pid)), process)


def _copy(number: int, back: BinaryIO, to: BinaryIO) -> None:
    """Every line with its rank before it."""
    with back, suppress(OSError, ValueError):
        for line in back:
            to.write(b"[%d] %s" % (number, line if line.endswith(b"\n") else line + b"\n"))
            to.flush()


def _verdict(boards: Boards, children: Sequence[Child]) -> int:
    """Which rank failed first, and why, in one sentence; its exit code."""
    failed = {child.peer.rank: child for child in children if child.code}
    if not failed:
        return 0
    teller, told = what_was_told(boards)
    gone = told.findings[0].facts.get("ranks", []) if told and told.findings else []
    first = next(failed[rank] for rank in (*gone, teller, *failed) if rank in failed)
    code = first.code or 1
    click.echo(f"ptokit.comm: {first.mistake if code < 0 or not told else told}", err=True)
    return code if code > 0 else 128 - code


def main() -> None:
    """The entry point: a user's mistake is one sentence, never a traceback."""
    try:
        command.main(prog_name="python -m ptokit.comm")
    except PtoError as mistake:
        click.echo(f"ptokit.comm: {mistake}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
