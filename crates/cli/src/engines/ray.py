"""Speaks to Ray for dbdyno: `nodes` lists the nodes of a cluster, `run` runs a program on one of them, `stream` does
so with its standard input and output here, and `reserve` holds some of them.

The first argument is the address of the cluster, as Ray understands it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

# The folder in which dbdyno was called is none of Python's modules.
sys.path = [folder for folder in sys.path if folder]

# How long a program may take to end when it is asked to; a server writes its memory to disk.
END_SECONDS = 120

# How long after a request to end the next one is made.
REQUEST_SECONDS = 5

# How long to wait for nodes that are free.
RESERVE_SECONDS = 60

# How often to try to connect: the server of `ray://` forks in the midst of gRPC's threads, and what it starts may not live.
CONNECT_ATTEMPTS = 3

# What one message carries.
PIECE_BYTES = 1 << 20

# What the program gets: nothing that lets it speak to Ray, such as the token.
VARIABLES = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHON"))}


def placed(ray, what, node, cpus, **options):
    """The function or class for this node and no other."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    where = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(what).options(num_cpus=float(cpus), scheduling_strategy=where, **options)


def access():
    """On a node: whether its processes ask for a token."""
    return "token" if os.environ.get("RAY_AUTH_MODE", "").lower() == "token" else "open"


def program(words, folder, variables, log):
    """On a node: runs the words and returns their exit status. They end with this process, however it ends."""
    # Ray's requests to end are as Ctrl-C, which a cluster that was started in the background ignores.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    words = ["setpriv", "--pdeathsig", "TERM", "--", *words]
    with open(log, "ab") as end:
        child = subprocess.Popen(
            words,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=end,
            stderr=end,
            start_new_session=True,
        )
    kill_at = None
    while child.poll() is None:
        try:
            # Waiting in the kernel would keep a request to end from being seen.
            time.sleep(0.1)
        except KeyboardInterrupt:
            if kill_at is None:
                child.terminate()
                kill_at = time.monotonic() + END_SECONDS
        if kill_at is not None and time.monotonic() > kill_at:
            child.kill()
    return child.returncode


def nodes(ray):
    """Prints each node that is alive: whether it asks for a token, number, CPUs, address, name."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    asked = [placed(ray, access, node["NodeID"], 0, max_retries=0).remote() for node in alive]
    for node, answer in zip(alive, asked):
        try:
            found = ray.get(answer, timeout=60)
        except ray.exceptions.RayError:
            continue  # Ray has not seen yet that it is dead.
        cpus, address = node["Resources"].get("CPU", 0), node["NodeManagerAddress"]
        print("node", found, node["NodeID"], cpus, address, node.get("NodeName") or address, flush=True)


def run(ray, node, cpus, log, *words):
    """Runs words on a node with all of its CPUs; ends as they do."""
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    # Once or not at all: dbdyno runs a block again.
    task = placed(ray, program, node, cpus, max_retries=0).remote(words, os.getcwd(), VARIABLES, log)
    # Ray may lose a request to end.
    next_request = time.monotonic()
    while not ray.wait([task], timeout=0.2)[0]:
        if asked and time.monotonic() >= next_request:
            ray.cancel(task)
            next_request = time.monotonic() + REQUEST_SECONDS
    status = ray.get(task)
    if status < 0:
        raise RuntimeError(f"the task was ended by signal {-status} ({signal.Signals(-status).name})")
    return status


class Stream:
    """On a node: a program whose standard input and output are elsewhere. It ends with this process, however it ends."""

    def __init__(self, words, folder, variables):
        self.said = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "--", *words],
            cwd=folder if os.path.isdir(folder) else "/",
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            start_new_session=True,
        )

    def write(self, data):
        try:
            if data:
                self.child.stdin.write(data)
                self.child.stdin.flush()
            else:
                self.child.stdin.close()
        except BrokenPipeError:
            pass  # What it says when it ends has the reason.

    def read(self):
        return os.read(self.child.stdout.fileno(), PIECE_BYTES)

    def wait(self):
        status = self.child.wait()
        self.said.seek(0)
        return status, self.said.read()

    def stop(self):
        self.child.terminate()


def stream(ray, node, cpus, *words):
    """Runs words on a node with so many CPUs of it, with this process's standard input and output; ends as they do."""
    there = placed(ray, Stream, node, cpus, max_concurrency=3).remote(words, os.getcwd(), VARIABLES)
    signal.signal(signal.SIGTERM, lambda *_: there.stop.remote())

    def send():
        while data := os.read(0, PIECE_BYTES):
            ray.get(there.write.remote(data))
        ray.get(there.write.remote(b""))

    threading.Thread(target=send, daemon=True).start()
    while data := ray.get(there.read.remote()):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    status, said = ray.get(there.wait.remote())
    sys.stderr.buffer.write(said)
    return status


def reserve(ray, hosts):
    """Holds so many nodes with their CPUs until standard input ends; prints number and address of each."""
    from ray.util.placement_group import placement_group, placement_group_table

    alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")}
    if len(alive) < int(hosts):
        raise RuntimeError(f"the cluster has {len(alive)} nodes with CPUs")
    cpus = min(node["Resources"]["CPU"] for node in alive.values())
    group = placement_group([{"CPU": cpus}] * int(hosts), strategy="STRICT_SPREAD")
    if not group.wait(RESERVE_SECONDS):
        raise RuntimeError(f"not so many nodes had {cpus:g} free CPUs at once within {RESERVE_SECONDS} s")
    for node in placement_group_table(group)["bundles_to_node_id"].values():
        print("host", node, alive[node]["NodeManagerAddress"], flush=True)
    sys.stdin.read()


def connect(ray, address):
    for attempt in range(1, CONNECT_ATTEMPTS + 1):
        try:
            return ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except ConnectionAbortedError:
            if attempt == CONNECT_ATTEMPTS:
                raise


def main(address, what, *arguments):
    import ray

    connect(ray, address)
    return {"nodes": nodes, "reserve": reserve, "run": run, "stream": stream}[what](ray, *arguments)


if __name__ == "__main__":
    try:
        status = main(*sys.argv[1:])
    except Exception as error:
        error = getattr(error, "cause", None) or error
        sys.exit(f"error: {type(error).__name__}: {' '.join(str(error).split())}")
    sys.exit(status)
