"""Draws programs: loops of small operations from few call sites, in epochs of all kinds, mostly so that nothing conflicts, and
here and there not.  Each program has one order in which its steps can be taken; in turns it has that order, and else the ranks are let
loose.

Most operations keep to a plan: in each phase each place of 8 bytes is one rank's to put and get, or everybody's to read, or
everybody's to accumulate with one operator and type. A careless program goes beside it now and then."""

import collections
import random

import program as p

PLACE = 8
ARENA_OF_WINDOWS = 1 << 14
BUFFER = 64  # bytes of each
BUFFERS = 96
FIRST_PHASE = 100000  # among the numbers in windows' names; those below are lines


class Rank:
    """What a rank is about to do: a list of chunks, each a list of steps that hold no lock at its ends."""

    def __init__(self):
        self.chunks = collections.deque()
        self.buffer = 0
        self.pending = set()  # places of unflushed operations
        self.requests = 0


class Drawer:
    def __init__(self, seed, ranks, index):
        self.random = random.Random(seed)
        self.ranks, self.index = ranks, index
        draw = self.random
        self.in_turns = draw.random() < 0.6
        self.careless = draw.choice([0, 0.01, 0.03, 0.03, 0.1, 0.3])
        self.forgetful = draw.choice([0, 0.01, 0.03, 0.1])  # of flushes
        self.fine = draw.random() < 0.5 and self.careless < 0.2
        self.sites = {kind: draw.sample(range(p.SITES), draw.randint(1, 3)) for kind in p.KINDS}
        self.fixed_buffer = draw.random() < 0.6
        self.with_types = draw.random() < 0.4
        self.kinds = draw.sample(["put", "get", "accumulate", "fetch_and_op", "compare_and_swap", "get_accumulate"],
                                 draw.randint(1, 5))
        self.steps = []
        self.queues = [Rank() for _ in range(ranks)]
        self.windows, self.names, self.makings = {}, {}, collections.Counter()
        self.types = [{} for _ in range(ranks)]
        self.held = {}      # (window, target) -> {rank: exclusive}
        self.regimes = {}   # window -> what the phase does with it
        self.plans = {}
        delays = draw.choice([0, 10, 60]) if not self.in_turns else 0
        self.collective("program", int(self.in_turns), delays, seed % 100000)
        self.delays, self.seed = delays, seed

    # --- steps ---

    def emit(self, rank, what, *fields, window=None, kind=None):
        self.steps.append(p.Step(rank, what, fields, window, kind, self.names.get((rank, window)) if window else None))

    def collective(self, what, *fields, window=None):
        for rank in range(self.ranks):
            self.emit(rank, what, *fields, window=window)

    def rename(self, rank, window, number):
        name = f"{self.index}.{window.number}.{number}"
        self.emit(rank, "name", window.number, self.index, number)
        self.names[rank, window] = name

    def make_window(self, number):
        draw = self.random
        kind = int(draw.random() < 0.5)
        size = draw.choice([32, 64, 128, 256, 1024])
        unit = draw.choice([1, 4, 8])
        at = draw.choice([0, 0, 64, 128, 1024, 1028 // 4 * 4]) if kind else 0
        hint = draw.choice([0, 0, 0, 1, 2])
        self.makings[number] += 1
        window = p.Window(number, self.makings[number], kind, size, unit, at, hint)
        self.windows[number] = window
        self.collective("window", number, kind, size, unit, at, hint, window=window)

    # --- a chunk: one loop ---

    def place_for(self, rank, window, kind, careless):
        """Target and place that the plan gives the rank for it; None: there is none."""
        draw = self.random
        plan = self.plans[window]
        fits = [(target, place) for target in self.targets_of(rank, window) for place in range(window.size // PLACE)
                if careless or self.allows(plan[target, place], rank, kind)]
        return draw.choice(fits) if fits else None

    def targets_of(self, rank, window):
        regime = self.regimes[window]
        return mask_of(regime[1][rank]) if regime[0] == "pscw" else range(self.ranks)

    @staticmethod
    def allows(plan, rank, kind):
        what, whose = plan[0], plan[1]
        if kind in ("put", "rput"):
            return what == "own" and whose == rank
        if kind in ("get", "rget"):
            return (what == "own" and whose == rank) or what == "read"
        return what == "accumulate"

    def type_for(self, rank, plan, kind):
        """Number, Type, count: at most the 8 bytes of a place, or more where the window's plan does not care."""
        draw = self.random
        if kind in p.PUTS | p.GETS:
            drawn = [number for number, kind in self.types[rank].items() if kind.extent <= PLACE]
            if drawn and draw.random() < 0.5:
                number = draw.choice(drawn)
                return number, self.types[rank][number], 1
            number = draw.choice([p.INT, p.LONG, p.DOUBLE, p.BYTE, p.SHORT])
            return number, p.basic_type(number), draw.randint(1, PLACE // p.BASIC_BYTES[number])
        number = plan[2]
        if kind == "compare_and_swap" and number in p.REALS:
            number = p.LONG
        several = kind in ("accumulate", "get_accumulate") and p.BASIC_BYTES[number] < PLACE and draw.random() < 0.2
        return number, p.basic_type(number), 2 if several else 1

    def buffer_for(self, rank, careless):
        queue = self.queues[rank]
        if careless:
            return ARENA_OF_WINDOWS + BUFFER * self.random.randrange(BUFFERS) + 4 * self.random.randrange(3)
        queue.buffer = (queue.buffer + 1) % BUFFERS
        return ARENA_OF_WINDOWS + BUFFER * queue.buffer

    def loop(self, rank, window, targets=None):
        """Steps of a loop that makes one operation from one or two sites again and again."""
        draw, queue = self.random, self.queues[rank]
        regime = self.regimes[window][0]
        passive = regime in ("all", "lock")
        kind = draw.choice(self.kinds)
        if passive and kind in ("put", "get", "accumulate") and draw.random() < 0.1:
            kind = "r" + kind
        sites = draw.sample(self.sites[kind], min(len(self.sites[kind]), draw.choice([1, 1, 2])))
        flushing = draw.choice([1, 1, 1, 0.7, 0.2]) if passive else 0
        type_choice = None
        buffers = [self.buffer_for(rank, False) for _ in range(3)] if self.fixed_buffer and flushing == 1 else None
        steps, pending = [], set()

        def flush_one(target):
            roll = draw.random()
            if regime == "lock" or roll < 0.8:
                steps.append(("flush", (window.number, target), window, None))
            else:
                steps.append(("flush_all", (window.number,), window, None))

        for turn in range(draw.choice([1, 2, 3, 5, 8, 16])):
            careless = draw.random() < self.careless
            found = self.place_for(rank, window, kind, careless)
            if found is None:
                break
            target, place = found
            if targets is not None:
                target = draw.choice(targets)
                if not careless and not self.allows(self.plans[window][target, place], rank, kind):
                    continue
            plan = self.plans[window][target, place]
            if type_choice is None or careless or kind not in p.PUTS | p.GETS:
                type_choice = self.type_for(rank, plan, kind)
            number, made, count = type_choice
            op = p.SWAP if kind == "compare_and_swap" else plan[3]
            if careless and draw.random() < 0.5:
                op = draw.choice([p.SUM, p.REPLACE, p.NO_OP, p.MAX])
            if careless and draw.random() < 0.5 and kind not in p.PUTS | p.GETS:
                number, made = draw.choice([(n, p.basic_type(n)) for n in (p.INT, p.LONG, p.UNSIGNED)])
                count = 1
            if kind in ("accumulate", "raccumulate") and op == p.NO_OP:
                op = p.SUM
            low = draw.choice([x for x in range(0, PLACE, window.unit) or [0]
                               if x % p.BASIC_BYTES[made.basic] == 0 and x + count * made.extent <= PLACE] or [0])
            disp = (place * PLACE + low) // window.unit
            if disp * window.unit + count * made.extent > window.size:
                continue
            key = (window, target, place)
            if passive and key in pending | queue.pending and draw.random() >= self.forgetful:
                flush_one(target)
                pending = {k for k in pending if k[1] != target}
                queue.pending = {k for k in queue.pending if k[0] != window or k[1] != target}
            if not passive and key in pending | queue.pending and not careless and kind in p.PUTS | p.GETS:
                continue
            mine = buffers or [self.buffer_for(rank, careless) for _ in range(3)]
            fetches = kind in p.FETCHES
            request = -1
            if kind[0] == "r":
                queue.requests = (queue.requests + 1) % 60
                request = queue.requests
            if careless and window.kind == 1 and draw.random() < 0.3:
                mine = [window.at + PLACE * draw.randrange(window.size // PLACE), *mine[1:]]
            site = draw.choice(sites)
            steps.append(("op", (p.KINDS.index(kind), site, window.number, target, disp, count, number, 0 if op == p.SWAP else op,
                                 mine[0], mine[1] if fetches else -1, mine[2] if kind == "compare_and_swap" else -1, request),
                          window, made))
            pending.add(key)
            if request >= 0:
                steps.append(("wait", (request,), None, None))
            if passive and draw.random() < flushing and draw.random() >= self.forgetful:
                flush_one(target)
                pending = {k for k in pending if k[1] != target}
            elif passive and draw.random() < 0.1:
                steps.append(draw.choice([("flush_local", (window.number, target), window, None),
                                          ("flush_local_all", (window.number,), window, None)]))
        queue.pending |= pending
        return steps

    def chunk(self, rank):
        """One thing that a rank does next."""
        draw = self.random
        roll = draw.random()
        if roll < 0.1 and self.ranks > 1:
            other = draw.choice([r for r in range(self.ranks) if r != rank])
            return [("send", (other, 1), None, None)]
        window = draw.choice(list(self.windows.values()))
        regime = self.regimes[window][0]
        if regime == "none":
            return []
        if regime == "lock":
            target = draw.randrange(self.ranks)
            body = self.loop(rank, window, [target])
            self.queues[rank].pending = {k for k in self.queues[rank].pending if k[0] != window or k[1] != target}
            exclusive = int(draw.random() < self.regimes[window][1])
            return [("lock", (window.number, target, exclusive), window, None), *body,
                    ("unlock", (window.number, target), window, None)]
        return self.loop(rank, window)

    # --- phases ---

    def draw_plan(self, window):
        draw = self.random
        plan = {}
        for target in range(self.ranks):
            for place in range(window.size // PLACE):
                basic = draw.choice([p.INT, p.INT, p.LONG, p.UNSIGNED])
                op = draw.choice([p.SUM, p.SUM, p.REPLACE, p.NO_OP, p.MAX])
                plan[target, place] = draw.choice([("own", draw.randrange(self.ranks)), ("read", None), ("accumulate", None)]) + \
                    (basic, op)
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
            self.collective("fence", window.number, window=window)
            self.regimes[window] = ("fence",)
        else:
            starts = [sum(1 << t for t in range(self.ranks) if draw.random() < 0.5) for _ in range(self.ranks)]
            posts = [sum(1 << r for r in range(self.ranks) if starts[r] >> t & 1) for t in range(self.ranks)]
            for rank in range(self.ranks):
                self.emit(rank, "post", window.number, posts[rank], window=window)
            for rank in range(self.ranks):
                self.emit(rank, "start", window.number, starts[rank], window=window)
            self.regimes[window] = ("pscw", starts)

    def close_phase(self, window):
        regime = self.regimes[window][0]
        if regime == "all":
            for rank in range(self.ranks):
                self.emit(rank, "unlock_all", window.number, window=window)
        elif regime == "fence":
            self.collective("fence", window.number, window=window)
        elif regime == "pscw":
            for rank in range(self.ranks):
                self.emit(rank, "complete", window.number, window=window)
            for rank in range(self.ranks):
                self.emit(rank, "wait_posted", window.number, window=window)
        for queue in self.queues:
            queue.pending = {key for key in queue.pending if key[0] != window}
        del self.regimes[window]

    def may_take(self, rank, step):
        what, fields, window, _ = step
        if what != "lock":
            return True
        holders = self.held.get((window, fields[1]), {})
        return not any(fields[2] or exclusive for other, exclusive in holders.items() if other != rank)

    def take(self, rank, step):
        what, fields, window, kind = step
        if what == "lock":
            self.held.setdefault((window, fields[1]), {})[rank] = fields[2]
        elif what == "unlock":
            del self.held[window, fields[1]][rank]
        elif what == "send":
            other = fields[0]
            self.queues[other].chunks.append([("recv", (rank, 1), None, None)])
        if what == "op" and self.fine:
            self.rename(rank, window, len(self.steps) + 1)
        self.emit(rank, what, *fields, window=window, kind=kind)

    def work(self):
        """The ranks' chunks, one step after the other, now this rank's and now that one's."""
        draw = self.random
        left = {rank: draw.randint(1, 5) for rank in range(self.ranks)}
        keep = draw.choice([0.3, 0.8, 0.97])
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
                if queue.chunks and self.may_take(other, queue.chunks[0][0]):
                    ready.append(other)
            if not ready:
                assert not any(queue.chunks for queue in self.queues), "nobody can go on"
                return
            if rank not in ready or draw.random() > keep:
                rank = draw.choice(ready)
            queue = self.queues[rank]
            step = queue.chunks[0].pop(0)
            if not queue.chunks[0]:
                queue.chunks.popleft()
            self.take(rank, step)

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
        return p.Program(self.seed, self.ranks, self.in_turns, self.delays, self.steps)


def mask_of(mask):
    return [i for i in range(32) if mask >> i & 1]


def draw(seed, ranks, index):
    return Drawer(seed, ranks, index).draw_program()
