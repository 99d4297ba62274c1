"""Speaks to Ray for dbdyno: `nodes` lists the nodes of a cluster, `run` runs a program on one of them.

The first argument is the address of the cluster, as Ray understands it.
"""

import os
import signal
import subprocess
import sys
import time

# The folder in which dbdyno was called is none of Python's modules.
sys.path = [folder for folder in sys.path if folder]

# How long a program may take to end when it is asked to; a server writes its memory to disk.
END_SECONDS = 120

# How long after a request to end the next one is made.
REQUEST_SECONDS = 5

# What the program gets: nothing that lets it speak to Ray, such as the token.
VARIABLES = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHON"))}


def placed(ray, function, node, cpus):
    """The function as a task that runs on this node, once or not at all."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    where = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(function).options(num_cpus=cpus, max_retries=0, scheduling_strategy=where)


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
    asked = [placed(ray, access, node["NodeID"], 0).remote() for node in alive]
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
    task = placed(ray, program, node, float(cpus)).remote(words, os.getcwd(), VARIABLES, log)
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


def main(address, what, *arguments):
    import ray

    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    return {"nodes": nodes, "run": run}[what](ray, *arguments)


if __name__ == "__main__":
    try:
        status = main(*sys.argv[1:])
    except Exception as error:
        error = getattr(error, "cause", None) or error
        sys.exit(f"error: {type(error).__name__}: {' '.join(str(error).split())}")
    sys.exit(status)
