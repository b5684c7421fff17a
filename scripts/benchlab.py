"""What scripts/bench measures with: a repository to change, a program on a terminal of its own, figures of processes.

Standard library only. One thread does everything: the moment a text is readable is the moment `read` on the terminal
returned it, taken from the same clock as the moment the writer's close(2) returned.
"""

import fcntl
import hashlib
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import tempfile
import termios
import time

ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])|\x07")
START = re.compile(
    rb"keep watch: (?P<count>\d+) protected files? in .*?; (?P<backend>\w+)(?: \((?P<besides>[^)]*)\))?;.*?undecided changes are restored after \d+ s",
    re.S)


# The first of a watch's options: as if the person who starts it had no privilege, though the bench has. It stays root, and
# is without the one capability that matters here.
ORDINARY = "as an ordinary user"
WITHOUT = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--ambient-caps=-sys_admin", "--")


class BenchError(Exception):
    """A measurement could not be made; the text says which and why."""


def fresh(label=b"VALUE"):
    """Content nobody has seen yet, as a dotenv line."""
    return label + b"=" + os.urandom(12).hex().encode() + b"\n"


def short(content):
    """The part of the digest a question shows."""
    return hashlib.sha256(content).hexdigest()[:12].encode()


def without_escapes(shown):
    """What a terminal was sent, without escape sequences and bells."""
    return ESCAPES.sub(b"", shown)


class Sample:
    """Measured values of one kind."""

    def __init__(self, values):
        self.values = sorted(values)
        if not self.values:
            raise BenchError("nothing was measured")

    @property
    def min(self):
        return self.values[0]

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def p99(self):
        """The smallest value that 99 of 100 do not exceed (nearest rank); below 100 values, the largest."""
        return self.values[-(-len(self.values) * 99 // 100) - 1]

    @property
    def max(self):
        return self.values[-1]


class Lab:
    """A throw-away home with a repository in it, and nothing of the person's settings."""

    def __init__(self, keep, parent=None):
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="keep-bench-", dir=parent))
        self.keep = keep
        self.repo = os.path.join(self.base, "repo")
        self.state = os.path.join(self.base, "state")
        home = os.path.join(self.base, "home")
        for folder in (self.repo, home):
            os.mkdir(folder)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color", "LANG": "C.UTF-8",
            "KEEP_STATE_DIR": self.state, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Bench", "GIT_AUTHOR_EMAIL": "bench@example.invalid",
            "GIT_COMMITTER_NAME": "Bench", "GIT_COMMITTER_EMAIL": "bench@example.invalid",
        }
        self.git("init", "-q", "-b", "main")
        self.git("config", "gc.auto", "0")
        self.write(".gitignore", b".env\n")
        self.write(".env", b"VALUE=first\n")
        self.watches = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for watch in self.watches:
            watch.kill()
        shutil.rmtree(self.base, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.repo, name)

    def git(self, *words):
        done = subprocess.run(["git", *words], cwd=self.repo, env=self.env, capture_output=True)
        if done.returncode:
            raise BenchError(f"git {' '.join(words)}: {done.stderr.decode(errors='replace')}")

    def write(self, name, content):
        """Writes in place as most programs do; returns the moment close(2) was through."""
        path = self.path(name)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path))
            return self.write(name, content)
        os.write(descriptor, content)
        os.close(descriptor)
        return time.monotonic()

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def fill(self, files, folders, name="file{}.txt", content=b"text\n", below="tree"):
        """Makes `files` files, spread over `folders` folders, two levels deep."""
        places = [self.path(f"{below}/{number // 200}/{number}") for number in range(folders)]
        for place in places:
            os.makedirs(place)
        for number in range(files):
            place = os.path.join(places[number % folders], name.format(number))
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if content:
                os.write(descriptor, content)
            os.close(descriptor)

    def watch(self, *options, timeout=60):
        watch = Watch(self, options)
        self.watches.append(watch)
        watch.started = watch.wait_for(START, timeout, "start line")
        return watch

    def journal(self, event):
        """The entries of this kind, oldest first."""
        found = []
        for folder, _, files in os.walk(self.state):
            if "journal.jsonl" in files:
                with open(os.path.join(folder, "journal.jsonl"), "rb") as file:
                    found += [entry for entry in map(json.loads, file) if entry["event"] == event]
        return found

    def transients(self, name):
        """How many journal entries tell of a change of `name` that was gone before it could be shown."""
        found = 0
        for folder, _, files in os.walk(self.state):
            if "journal.jsonl" in files:
                with open(os.path.join(folder, "journal.jsonl"), "rb") as file:
                    found += sum(b"transient" in line and name.encode() in line for line in file)
        return found


def everybody():
    """(process, parent, session) of every process that has not ended."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] != "Z":
                yield int(entry), int(fields[1]), int(fields[3])


class OnTerminal:
    """A command as the leader of its own session, on a terminal of 50 rows and 200 columns."""

    def __init__(self, lab, *words, before=()):
        self.lab, self.seen, self.started = lab, b"", None
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        self.spawned = time.monotonic()
        self.process = subprocess.Popen(
            [*before, lab.keep, *words], cwd=lab.repo, env=lab.env,
            stdin=self.slave, stderr=self.slave, stdout=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.pid = self.process.pid

    def read(self, timeout):
        """Takes what the terminal shows; false when nothing came in time."""
        if not select.select([self.master], [], [], max(timeout, 0))[0]:
            return False
        self.seen = (self.seen + os.read(self.master, 65536))[-262144:]
        return True

    def wait_for(self, pattern, timeout, what):
        """Waits for a pattern on the terminal; the moment it was readable is left in `at`."""
        deadline = time.monotonic() + timeout
        while True:
            self.at = time.monotonic()
            found = re.search(pattern, without_escapes(self.seen))
            if found:
                return found
            if self.at > deadline or (not self.read(min(deadline - self.at, 0.2)) and self.process.poll() is not None):
                raise BenchError(f"no {what}; the terminal shows {self.seen[-300:]!r}")

    def signal_all(self, number):
        for pid in self.processes():
            os.kill(pid, number)

    def processes(self):
        """It and all it started, by session."""
        return [pid for pid, parent, session in everybody() if session == self.pid]

    def family(self):
        """The same, and children that have left the session, as a guardian does."""
        return [pid for pid, parent, session in everybody() if self.pid in (session, parent)]

    def cpu_and_wakeups(self):
        """Nanoseconds on a processor, clock ticks as `stat` counts them, and voluntary switches, of all threads."""
        nanos = ticks = switches = 0
        for pid in self.family():
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                    nanos += int(file.read().split()[0])
                with open(f"/proc/{pid}/task/{thread}/status") as file:
                    switches += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M)[1])
        return nanos, ticks, switches

    def memory(self):
        """Resident and anonymous resident KiB of it and all it started."""
        resident = anonymous = 0
        for pid in self.family():
            with open(f"/proc/{pid}/status") as file:
                status = file.read()
            resident += int(re.search(r"^VmRSS:\s+(\d+)", status, re.M)[1])
            anonymous += int(re.search(r"^RssAnon:\s+(\d+)", status, re.M)[1])
        return resident, anonymous

    def stop(self):
        """Ends it as a person would, so that nothing is left to recover."""
        self.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 60
        while self.process.poll() is None:
            self.read(0.02)
            if time.monotonic() > deadline:
                raise BenchError("it does not end")
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.signal_all(signal.SIGKILL)
            self.process.wait()
        for descriptor in (self.master, self.slave):
            if descriptor is not None:
                os.close(descriptor)
        self.master = self.slave = None


class Watch(OnTerminal):
    """`keep watch`."""

    def __init__(self, lab, options):
        before = ()
        if options[:1] == (ORDINARY,):
            before, options = WITHOUT, options[1:]
        super().__init__(lab, "watch", "--no-notify", "--decision-timeout", "600", *options, before=before)

    @property
    def backend(self):
        name = self.started["backend"].decode()
        return f"{name}, with privilege" if self.started["besides"] else name

    def asked_about(self, content, timeout=10.0):
        """Waits until the question about this content can be read; returns that moment."""
        self.wait_for(re.escape(short(content)) + rb"\)\. Keep it\?", timeout, "question")
        return self.at

    def settle(self, quiet=0.08):
        """Waits until nothing more comes for a while, and forgets what came.

        With polling the while lasts a round longer, and what comes next falls at any point of a round."""
        round_time = 1.0 if self.started and self.backend == "poll" else 0.0
        deadline = time.monotonic() + 30
        while self.read(quiet + round_time):
            if time.monotonic() > deadline:
                raise BenchError(f"the terminal does not come to rest; it shows {self.seen[-300:]!r}")
        self.seen = b""
        time.sleep(random.uniform(0, 0.05 + round_time))

    def put_back(self, name, content):
        """Undoes a change, so that its question is withdrawn and the next change is a question of its own."""
        self.lab.write(name, content)
        self.settle()
