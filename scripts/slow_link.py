"""A slow link: forwards packets between two links after a fixed delay, in order.

Packets are unchanged, including the header with the work that the sender's kernel left to its
hardware (checksums, segments), so bursts stay whole. scripts/testnet starts it on a net's switch;
it ends when one of the links is removed."""

import collections
import os
import select
import socket
import struct
import sys
import time

ETH_P_ALL, SOL_PACKET = 3, 263
PACKET_IGNORE_OUTGOING, PACKET_VNET_HDR, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 23, 15, 1, 1
LONGEST = 10 + 14 + 65536 + 64
QUEUE_MOST = 4096  # packets in the queue; more are dropped


def port(name):
    """The bridge's end of the inserted link."""
    return "r-" + name


def relay_end(name):
    """The end of the inserted link from which this script forwards."""
    return "q-" + name


def attach(link):
    """A socket for the packets that arrive at a link of the switch."""
    file = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    file.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    file.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    file.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
    file.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 << 20)
    file.bind((link, ETH_P_ALL))
    promiscuous = struct.pack("iHH8s", socket.if_nametoindex(link), PACKET_MR_PROMISC, 0, b"")
    file.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, promiscuous)
    return file


def is_removed(link):
    try:
        socket.if_nametoindex(link)
    except OSError:
        return True
    return False


def receive_all(file, queue, due):
    """Receives all packets that have arrived; False after an error, for example when the link is
    down."""
    try:
        while True:
            packet = file.recv(LONGEST)
            if len(queue) < QUEUE_MOST:
                queue.append((due(), packet))
    except BlockingIOError:
        return True
    except OSError:
        return False


def send_due(queue, file, now):
    while queue and queue[0][0] <= now:
        try:
            file.send(queue.popleft()[1])
        except OSError:
            pass  # a link that is down, or full, drops packets


def main():
    links, wait_s = sys.argv[1:3], float(sys.argv[3]) / 1000
    files = [attach(link) for link in links]
    queues = [collections.deque(), collections.deque()]
    while True:
        first = min((queue[0][0] for queue in queues if queue), default=None)
        ready = select.select(files, [], [], None if first is None else max(0, first - time.monotonic()))[0]
        for index, file in enumerate(files):
            if file in ready and not receive_all(file, queues[index], lambda: time.monotonic() + wait_s):
                if any(is_removed(link) for link in links):
                    os._exit(0)
        now = time.monotonic()
        for index, queue in enumerate(queues):
            send_due(queue, files[1 - index], now)


if __name__ == "__main__":
    main()
