"""Generates programs: loops of small operations from few call sites, in epochs of all kinds. Most
programs are free of conflicts; some are not.  Each program has one valid order of its steps. In
turns, the ranks follow that order; otherwise they run freely.

Most operations follow a plan. In each phase, each slot of 8 bytes has one role: put and get by
one rank, read by all, or accumulate by all with one operator and type. A careless program
deviates from the plan now and then."""

import collections
import random

import program as p
import promises
from loops import SLOT_BYTES, Loop

ARENA_OF_WINDOWS = 1 << 14
BUFFER = 128  # bytes of each buffer
BUFFERS = 96
FIRST_PHASE = 100000  # phase numbers in window names; smaller numbers are lines


class Rank:
    """The outstanding steps of one rank: a list of chunks. Each chunk is a list of steps that holds
    no lock at its ends."""

    def __init__(self):
        self.chunks = collections.deque()
        self.buffer = 0
        self.last_buffers = collections.deque(maxlen=5)
        self.pending = set()  # slots with unflushed operations
        self.requests = 0

    def buffer_for(self, random_, mistaken):
        """The next buffer, or one of the most recent, which may still be in use."""
        if mistaken and self.last_buffers:
            return random_.choice(self.last_buffers) + 4 * random_.choice([0, 0, 1, 2])
        self.buffer = (self.buffer + 1) % BUFFERS
        self.last_buffers.append(ARENA_OF_WINDOWS + BUFFER * self.buffer)
        return self.last_buffers[-1]


class Drawer:
    def __init__(self, seed, ranks, index, together):
        self.random = random.Random(seed)
        self.ranks, self.index, self.together = ranks, index, together
        draw = self.random
        self.in_turns = draw.random() < 0.6
        self.careless = draw.choice([0, 0.003, 0.01, 0.01, 0.03, 0.1])
        self.mistaken = draw.choice([0, 0, 0.01, 0.04])  # probability of a buffer in use
        self.forgetful = draw.choice([0, 0.003, 0.01, 0.03])  # probability of a missing flush
        self.fine = draw.random() < 0.5 and self.careless < 0.02
        self.sites = {kind: draw.sample(range(p.SITES), draw.randint(1, 3)) for kind in p.KINDS}
        self.fixed_buffer = draw.random() < 0.6
        self.with_types = draw.random() < 0.4
        self.kinds = draw.sample(["put", "get", "accumulate", "fetch_and_op", "compare_and_swap", "get_accumulate"],
                                 draw.randint(1, 5))
        self.steps = []
        self.queues = [Rank() for _ in range(ranks)]
        self.windows, self.makings = {}, collections.Counter()
        self.types = [{} for _ in range(ranks)]
        self.locks = {}      # (window, target) -> {rank: exclusive}
        self.regimes = {}   # window -> synchronisation of the phase
        self.plans = {}
        delays = draw.choice([0, 10, 60]) if not self.in_turns else 0
        self.collective("program", int(self.in_turns), delays, seed % 100000)
        self.delays, self.seed = delays, seed

    # --- steps ---

    def emit(self, rank, what, *fields, window=None, types=(None, None)):
        self.steps.append(p.Step(rank, what, fields, window, *types))

    def collective(self, what, *fields, window=None):
        for rank in range(self.ranks):
            self.emit(rank, what, *fields, window=window)

    def rename(self, rank, window, number):
        self.emit(rank, "name", window.number, self.index, number)

    def make_window(self, number):
        draw = self.random
        kind = draw.choice([p.ALLOCATED, p.ALLOCATED, p.IN_ARENA, p.IN_ARENA, p.DYNAMIC, p.SHARED])
        if kind == p.SHARED and not self.together:
            kind = p.ALLOCATED
        size = draw.choice([32, 64, 128, 256, 1024])
        unit = draw.choice([1, 4, 8]) if kind != p.DYNAMIC else 1
        at = draw.choice([0, 0, 64, 128, 1024, 1028 // 4 * 4]) if kind in (p.IN_ARENA, p.DYNAMIC) else 0
        hint = draw.choice([0, 0, 0, 1, 2])
        self.makings[number] += 1
        window = p.Window(number, self.makings[number], kind, size, unit, at, hint)
        self.windows[number] = window
        self.collective("window", number, kind, size, unit, at, hint, window=window)

    # --- a chunk ---

    def chunk(self, rank):
        """The next chunk of a rank."""
        draw = self.random
        roll = draw.random()
        if roll < 0.1 and self.ranks > 1:
            other = draw.choice([r for r in range(self.ranks) if r != rank])
            return [("send", (other, self.message_buffer(rank)), None, None)]
        window = draw.choice(list(self.windows.values()))
        regime = self.regimes[window][0]
        if regime == "lock":
            target = draw.randrange(self.ranks)
            body = Loop(self, rank, window, [target]).steps()
            self.queues[rank].pending = {k for k in self.queues[rank].pending if k[0] != window or k[1] != target}
            exclusive = int(draw.random() < self.regimes[window][1])
            return [("lock", (window.number, target, exclusive), window, None), *body,
                    ("unlock", (window.number, target), window, None)]
        return Loop(self, rank, window, self.targets_of(rank, window)).steps()

    def targets_of(self, rank, window):
        regime = self.regimes[window]
        return mask_of(regime[1][rank]) if regime[0] == "pscw" else list(range(self.ranks))

    def message_buffer(self, rank):
        return self.queues[rank].buffer_for(self.random, self.random.random() < self.mistaken)

    # --- phases ---

    def draw_plan(self, window):
        """Assigns a role to each slot, and the end of the run of slots with the same role."""
        draw = self.random
        plan = {}
        for target in range(self.ranks):
            slots = window.size // SLOT_BYTES
            end = 0
            for slot in range(slots):
                if slot == end:
                    end = min(slots, slot + draw.choice([1, 1, 2, 4, 8]))
                    what = draw.choice([("own", draw.randrange(self.ranks)), ("read", None), ("accumulate", None)])
                    element = draw.choice([p.INT, p.INT, p.LONG, p.UNSIGNED])
                    operator = draw.choice([p.SUM, p.SUM, p.REPLACE, p.NO_OP, p.MAX])
                plan[target, slot] = (*what, element, operator, end)
        self.plans[window] = plan

    def open_phase(self, window):
        draw = self.random
        regime = draw.choice(["all", "all", "all", "lock", "fence", "pscw"])
        if regime == "all":
            self.collective("lock_all", window.number, window=window)
            self.regimes[window] = ("all",)
        elif regime == "lock":
            self.regimes[window] = ("lock", draw.choice([0, 0.3, 1]))
        elif regime == "fence":
            self.collective("fence", window.number, 0, window=window)
            self.regimes[window] = ("fence",)
        else:
            starts = [sum(1 << t for t in range(self.ranks) if draw.random() < 0.5) for _ in range(self.ranks)]
            posts = [sum(1 << r for r in range(self.ranks) if starts[r] >> t & 1) for t in range(self.ranks)]
            for rank in range(self.ranks):
                self.emit(rank, "post", window.number, posts[rank], 0, window=window)
            for rank in range(self.ranks):
                self.emit(rank, "start", window.number, starts[rank], window=window)
            self.regimes[window] = ("pscw", starts)

    def close_phase(self, window):
        regime = self.regimes[window][0]
        if regime == "all":
            for rank in range(self.ranks):
                self.emit(rank, "unlock_all", window.number, window=window)
        elif regime == "fence":
            self.collective("fence", window.number, 0, window=window)
        elif regime == "pscw":
            for rank in range(self.ranks):
                self.emit(rank, "complete", window.number, window=window)
            for rank in range(self.ranks):
                self.emit(rank, "wait_posted", window.number, window=window)
        for queue in self.queues:
            queue.pending = {key for key in queue.pending if key[0] != window}
        del self.regimes[window]

    def may_execute(self, rank, step):
        what, fields, window, _ = step
        if what != "lock":
            return True
        holders = self.locks.get((window, fields[1]), {})
        return not any(fields[2] or exclusive for other, exclusive in holders.items() if other != rank)

    def execute(self, rank, step):
        what, fields, window, types = step
        if what == "lock":
            self.locks.setdefault((window, fields[1]), {})[rank] = fields[2]
        elif what == "unlock":
            del self.locks[window, fields[1]][rank]
        elif what == "send":
            other = fields[0]
            self.queues[other].chunks.append([("recv", (rank, self.message_buffer(other)), None, None)])
        if what == "op" and self.fine:
            self.rename(rank, window, len(self.steps) + 1)
        self.emit(rank, what, *fields, window=window, types=types or (None, None))

    def work(self):
        """Runs the ranks' chunks one step at a time, in an interleaving drawn at random."""
        draw = self.random
        left = {rank: draw.randint(1, 5) for rank in range(self.ranks)}
        stay = draw.choice([0.3, 0.8, 0.97])
        rank = 0
        while True:
            ready = []
            for other in range(self.ranks):
                queue = self.queues[other]
                while not queue.chunks and left[other] > 0:
                    left[other] -= 1
                    chunk = self.chunk(other)
                    if chunk:
                        queue.chunks.append(chunk)
                if queue.chunks and self.may_execute(other, queue.chunks[0][0]):
                    ready.append(other)
            if not ready:
                assert not any(queue.chunks for queue in self.queues), "no rank can continue"
                return
            if rank not in ready or draw.random() > stay:
                rank = draw.choice(ready)
            queue = self.queues[rank]
            step = queue.chunks[0].pop(0)
            if not queue.chunks[0]:
                queue.chunks.popleft()
            self.execute(rank, step)

    def change_types(self):
        draw = self.random
        for rank in range(self.ranks):
            for number in (8, 9):
                if number in self.types[rank]:
                    if draw.random() < 0.6:
                        continue
                    self.emit(rank, "type_free", number)
                    del self.types[rank][number]
                shape, basic = draw.randrange(2), draw.choice([p.INT, p.SHORT])
                count = draw.randint(1, 2)
                self.emit(rank, "type", number, shape, count, basic)
                self.types[rank][number] = p.drawn_type(shape, count, basic)

    def begin_phase(self, phase):
        draw = self.random
        if phase and draw.random() < 0.2:
            number = draw.choice(list(self.windows))
            if self.windows[number] in self.regimes:
                self.close_phase(self.windows[number])
            self.collective("free", number, window=self.windows[number])
            self.make_window(number)
        if self.with_types:
            self.change_types()
        for window in self.windows.values():
            if window not in self.regimes:
                self.open_phase(window)
            if window not in self.plans or draw.random() < 0.7:
                self.draw_plan(window)
            for rank in range(self.ranks):
                self.rename(rank, window, FIRST_PHASE + phase)

    def end_phase(self):
        draw = self.random
        for window in list(self.regimes):
            if self.regimes[window][0] != "all" or draw.random() < 0.5:
                self.close_phase(window)
                continue
            for rank in range(self.ranks):
                if draw.random() >= self.forgetful:
                    self.emit(rank, "flush_all", window.number, window=window)
                    self.queues[rank].pending = {key for key in self.queues[rank].pending if key[0] != window}
        if draw.random() < 0.2:
            self.collective("bcast", draw.randrange(self.ranks))
        if not self.in_turns or draw.random() < 0.8:
            self.collective(draw.choice(["barrier", "barrier", "allreduce"]))

    def draw_program(self):
        draw = self.random
        for number in range(draw.choice([1, 1, 2, 3])):
            self.make_window(number)
        for phase in range(draw.randint(1, 5)):
            self.begin_phase(phase)
            self.work()
            self.end_phase()
        for window in list(self.regimes):
            self.close_phase(window)
        for rank in range(self.ranks):
            for number in self.types[rank]:
                self.emit(rank, "type_free", number)
        self.collective("barrier")
        for number, window in self.windows.items():
            self.collective("free", number, window=window)
        promises.draw(random.Random(self.seed), self.ranks, self.steps)
        return p.Program(self.seed, self.ranks, self.in_turns, self.delays, self.together, self.steps)


def mask_of(mask):
    return [i for i in range(32) if mask >> i & 1]


def draw(seed, ranks, index, together=True):
    """together: all ranks are on one node."""
    return Drawer(seed, ranks, index, together).draw_program()
