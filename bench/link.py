"""The performance of the link between two nodes without MPI: ucx_perftest, and the cost of waking a thread.

The output has the form of bench/raw's: for each argument NAME `begin NAME` and `end NAME NANOSECONDS`, the best of several runs.
`oriel bench --net` starts it with the command prefix of a test network (scripts/testnet --id ID), `--` and the names."""

import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import net_namespaces  # noqa: E402

DEVICE = "eth0"  # of the nodes of scripts/testnet
PORT = 13337  # ucx_perftest's default; nothing else listens on these nodes
RUNS = 4  # short ones: other load should not affect all of them
TESTS = {  # arguments of ucx_perftest, and a factor for its result: put_lat's is one way
    "link-way": (["-t", "ucp_put_lat"], 1),
    "link-put": (["-t", "ucp_put_lat"], 2),
    "link-put-many": (["-t", "ucp_put_bw"], 1),
    "link-get": (["-t", "ucp_get"], 1),
    "link-get-many": (["-t", "ucp_get", "-O", "64"], 1),
    "link-add": (["-t", "ucp_fadd"], 1),
    "link-swap": (["-t", "ucp_cswap"], 1),
}
ECHOES = {"link-asleep": "asleep", "link-awake": "awake", "link-busy": "busy"}
CONNECT_S = 10


class Trouble(Exception):
    pass


def started(net, machine, words, **streams):
    env = ["env", "UCX_TLS=" + os.environ.get("UCX_TLS", "tcp"),
           "UCX_NET_DEVICES=" + os.environ.get("UCX_NET_DEVICES", DEVICE), "UCX_WARN_UNUSED_ENV_VARS=n"]
    return subprocess.Popen([*net, "exec", machine, *env, *words], stdin=subprocess.DEVNULL, text=True, **streams)


def operations(size, many):
    """A number of operations that takes about a thirtieth of a second."""
    each_s = 2e-6 + size / 1e9 if many else 25e-6 + size / 5e8
    return int(min(max(0.03 / each_s, 24), 10000))


def asked(net, words):
    """Runs the client, again while the server does not listen yet, and returns its output."""
    deadline = time.monotonic() + CONNECT_S
    while True:
        client = started(net, "a", words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            output, errors = client.communicate(timeout=CONNECT_S)
        except subprocess.TimeoutExpired:
            client.kill()
            output, errors = client.communicate()
        if client.returncode == 0:
            return output
        if "connect() failed" not in output + errors or time.monotonic() > deadline:
            raise Trouble("ucx_perftest: status %d: %s" % (client.returncode, (output + errors).strip()[-300:]))
        time.sleep(0.05)


def perftest_ns(net, name, size):
    arguments, times = TESTS[name]
    count = operations(size, "many" in name)
    words = ["ucx_perftest", "-p", str(PORT), *arguments, "-s", str(size), "-n", str(count), "-w", str(count // 10 + 1), "-v"]
    server = started(net, "b", ["ucx_perftest", "-p", str(PORT)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        output = asked(net, words[:1] + [net_namespaces.host_name("b")] + words[1:])
    finally:
        try:
            server.wait(5)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    lines = [line.strip() for line in output.splitlines()]
    header, *rows = [line.split(",") for line in lines if re.match(r"[a-z0-9_.]+(,[a-z0-9_.]+){5}", line)] or [[]]
    if not rows or "overall_lat" not in header:
        raise Trouble("ucx_perftest: no result in: " + output.strip()[-300:])
    return float(rows[-1][header.index("overall_lat")]) * 1e3 * times


def echo_ns(net, name):
    program = os.path.join(HERE, "link")
    server = started(net, "b", [program, "serve"], stdout=subprocess.PIPE)
    port = server.stdout.readline().strip()
    client = started(net, "a", [program, "ask", net_namespaces.host_name("b"), port, ECHOES[name]], stdout=subprocess.PIPE)
    output = client.communicate()[0]
    server.wait()
    if client.returncode != 0:
        raise Trouble("link: status %d" % client.returncode)
    return float(output)


def main():
    split = sys.argv.index("--")
    net, names = sys.argv[1:split], [name for name in sys.argv[split + 1:] if not name.startswith("--")]
    if not shutil.which("ucx_perftest"):
        sys.exit("no ucx_perftest (package ucx-utils)")
    for name in names:
        pattern, size = name.split(":")[:2]
        print("begin " + name, flush=True)
        best = min(echo_ns(net, pattern) if pattern in ECHOES else perftest_ns(net, pattern, int(size)) for _ in range(RUNS))
        print("end %s %.2f" % (name, best), flush=True)


if __name__ == "__main__":
    try:
        main()
    except Trouble as trouble:
        sys.exit(str(trouble))
