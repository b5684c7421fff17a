"""What scripts/bench measures the gate with: `keep gate` on a terminal, an agent on `keep mcp`, and what it is held against.

Standard library only. An agent writes a line and reads one: a round trip is from before the write to the end of the read, so
that parsing the answer is not in it.
"""

import json
import os
import subprocess
import time

from benchlab import BenchError, OnTerminal

START = rb"keep gate: \d+ tools? below [^\n]*agents reach them through keep mcp"
# `policy.toml` and the socket lie there, too; the folder is the only one, since a lab has one root.
GRANTS = "grants.json"


class Gate(OnTerminal):
    """`keep gate`, ready for agents."""

    def __init__(self, lab):
        super().__init__(lab, "gate", "--no-notify")
        lab.watches.append(self)
        self.wait_for(START, 60, "start line")

    def grant(self, targets):
        """What `file_write` may write to without a question, from the next call on."""
        above = os.path.join(self.lab.state, "gate")
        folders = [name for name in os.listdir(above) if os.path.isdir(os.path.join(above, name))]
        if len(folders) != 1:
            raise BenchError(f"{above} holds {folders}, not one control folder")
        path = os.path.join(above, folders[0], GRANTS)
        grants = [{"kind": "file", "target": target} for target in sorted(targets)]
        with open(path + ".new", "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            json.dump(grants, file)
        os.rename(path + ".new", path)
        # For two seconds after a change the file is read at each look; what is measured is what follows.
        time.sleep(2.5)


class Agent:
    """An MCP client over the standard input and output of `keep mcp`."""

    def __init__(self, lab):
        self.process = subprocess.Popen([lab.keep, "mcp"], cwd=lab.repo, env=lab.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.number = 0
        self.took = 0.0
        self.request("initialize", protocolVersion="2025-06-18", capabilities={},
                     clientInfo={"name": "bench", "version": "1"})
        self.send({"method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, **params):
        """Sends a request and returns its result; how long that took is left in `took`, in ms."""
        self.number += 1
        start = time.monotonic()
        self.send({"id": self.number, "method": method, "params": params})
        line = self.process.stdout.readline()
        self.took = (time.monotonic() - start) * 1000
        reply = json.loads(line) if line else {}
        if reply.get("id") != self.number or "result" not in reply:
            raise BenchError(f"{method} is answered by {line[:300]!r}")
        return reply["result"]

    def ping(self):
        self.request("ping")
        return self.took

    def call(self, tool, **arguments):
        """Calls a tool, which has to work; its result. How long it took is left in `took`."""
        result = self.request("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            raise BenchError(f"{tool} fails: {str(result.get('content'))[:300]}")
        return result["structuredContent"]


class ByHand:
    """The steps that a durable write takes whoever does it: a line of a log synced, a file written beside, synced and
    renamed, its folder synced. Where the agent's files lie, and where the gate's do."""

    def __init__(self, lab):
        self.lab, self.log = lab, os.open(os.path.join(lab.state, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.folder = os.open(lab.repo, os.O_RDONLY | os.O_DIRECTORY)

    def write(self, name, content):
        """The ms it takes."""
        start = time.monotonic()
        os.write(self.log, b"x" * 200 + b"\n")
        os.fdatasync(self.log)
        beside = os.open(".beside", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self.folder)
        os.write(beside, content)
        os.fsync(beside)
        os.close(beside)
        os.rename(".beside", name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        os.fsync(self.folder)
        return (time.monotonic() - start) * 1000

    def close(self):
        os.close(self.log)
        os.close(self.folder)


def run(words, lab):
    """Runs a program to its end; its output in lines, and the ms it took."""
    start = time.monotonic()
    done = subprocess.run(words, cwd=lab.repo, env=lab.env, stdin=subprocess.DEVNULL, capture_output=True)
    took = (time.monotonic() - start) * 1000
    if done.returncode not in (0, 1):
        raise BenchError(f"{words[0]} ends with {done.returncode}: {done.stderr[:300]!r}")
    return done.stdout.splitlines(), took
