"""Loops in generated programs: one operation from one or two call sites, repeated on slots that the
phase's plan assigns to the rank, with occasional deviations."""

import program as p

SLOT_BYTES = 8
MOST_REQUESTS = 60


class Loop:
    """One loop of a rank on a window, to some of the given targets."""

    def __init__(self, drawer, rank, window, targets):
        self.drawer, self.rank, self.window, self.targets = drawer, rank, window, targets
        self.random, self.queue = drawer.random, drawer.queues[rank]
        self.plan = drawer.plans[window]
        draw = self.random
        self.regime = drawer.regimes[window][0]
        self.passive = self.regime in ("all", "lock")
        self.kind = draw.choice(drawer.kinds)
        if self.passive and self.kind in ("put", "get", "accumulate") and draw.random() < 0.1:
            self.kind = "r" + self.kind
        sites = drawer.sites[self.kind]
        self.sites = draw.sample(sites, min(len(sites), draw.choice([1, 1, 2])))
        self.flushing = draw.choice([1, 1, 1, 0.7, 0.2]) if self.passive else 0
        self.buffers = None
        if drawer.fixed_buffer and self.flushing == 1:
            self.buffers = [self.queue.buffer_for(draw, False) for _ in range(3)]
        self.found, self.waits, self.types = [], [], None

    def steps(self):
        for _ in range(self.random.choice([1, 2, 3, 5, 8, 16])):
            self.turn()
        self.found.extend(self.waits)
        return self.found

    # --- one iteration ---

    def allows(self, slot):
        what, owner = self.plan[slot][:2]
        if self.kind in p.PUTS:
            return what == "own" and owner == self.rank
        if self.kind in p.GETS:
            return (what == "own" and owner == self.rank) or what == "read"
        return what == "accumulate"

    def draw_slot(self, careless):
        """Target and slot, or None if no slot fits."""
        fits = [(target, slot) for target in self.targets for slot in range(self.window.size // SLOT_BYTES)
                if careless or self.allows((target, slot))]
        return self.random.choice(fits) if fits else None

    def draw_types(self, plan, room, careless):
        """Number, Type and count at the target, within the given number of bytes."""
        draw = self.random
        if self.kind in p.PUTS | p.GETS:
            drawn = [number for number, made in self.drawer.types[self.rank].items() if made.extent <= room]
            if drawn and draw.random() < 0.5:
                number = draw.choice(drawn)
                made = self.drawer.types[self.rank][number]
                return number, made, draw.choice([1, 1, max(1, min(room, 64) // made.extent)])
            number = draw.choice([p.INT, p.LONG, p.DOUBLE, p.BYTE, p.SHORT])
        else:
            number = plan[2]
            if careless and draw.random() < 0.5:
                number = draw.choice([p.INT, p.LONG, p.UNSIGNED])
        size = p.BASIC_BYTES[number]
        most = max(1, min(room, 64) // size)
        if self.kind in ("fetch_and_op", "compare_and_swap"):
            count = 1
        elif self.kind in p.PUTS | p.GETS:
            count = draw.choice([1, max(1, min(most, SLOT_BYTES // size)), most, draw.randint(1, most)])
        else:
            count = draw.choice([1, 1, 1, 1, draw.randint(1, most)])
        return number, p.basic_type(number), count

    def draw_operator(self, plan, careless):
        draw = self.random
        operator = draw.choice([p.SUM, p.REPLACE, p.NO_OP, p.MAX]) if careless and draw.random() < 0.5 else plan[3]
        if self.kind in ("accumulate", "raccumulate", "compare_and_swap") and operator == p.NO_OP:
            return p.SUM
        return operator

    def draw_origin(self, number, made, count):
        """The same data at the origin, in the same type or as bytes."""
        if self.kind in p.PUTS | p.GETS and self.random.random() < 0.15:
            return p.BYTE, p.basic_type(p.BYTE), count * made.size()
        return number, made, count

    def draw_buffers(self, careless):
        draw, window = self.random, self.window
        mistaken = draw.random() < self.drawer.mistaken
        buffers = [self.queue.buffer_for(draw, mistaken and draw.random() < 0.6) for _ in range(3)] \
            if self.buffers is None or mistaken else list(self.buffers)
        if careless and window.is_in_arena() and draw.random() < 0.3:
            buffers[0] = window.at + SLOT_BYTES * draw.randrange(window.size // SLOT_BYTES)
        return buffers

    # --- steps ---

    def flush(self, target):
        if self.regime == "lock" or self.random.random() < 0.8:
            self.found.append(("flush", (self.window.number, target), self.window, None))
            self.queue.pending = {key for key in self.queue.pending if key[:2] != (self.window, target)}
        else:
            self.found.append(("flush_all", (self.window.number,), self.window, None))
            self.queue.pending = {key for key in self.queue.pending if key[0] != self.window}

    def flush_pending(self, keys):
        """Flushes earlier operations of the same rank that would conflict, in most cases. Returns
        whether the operation may run now."""
        draw, pending = self.random, self.queue.pending
        if not keys & pending:
            return True
        if not self.passive:
            return draw.random() < self.drawer.careless
        for target in sorted({key[1] for key in keys & pending}):
            if draw.random() >= self.drawer.forgetful:
                self.flush(target)
        return True

    def request(self):
        if self.kind[0] != "r":
            return -1
        self.queue.requests = (self.queue.requests + 1) % MOST_REQUESTS
        return self.queue.requests

    def turn(self):
        draw, window = self.random, self.window
        careless = draw.random() < self.drawer.careless
        found = self.draw_slot(careless)
        if found is None:
            return
        target, slot = found
        plan = self.plan[found]
        room = SLOT_BYTES * ((window.size // SLOT_BYTES if careless else plan[4]) - slot)
        if self.types is None or careless or self.kind not in p.PUTS | p.GETS or self.types[1].extent * self.types[2] > room:
            self.types = self.draw_types(plan, room, careless)
        number, made, count = self.types
        fits = [low for low in range(0, room, window.unit)
                if low % p.BASIC_BYTES[made.basic] == 0 and low + count * made.extent <= room]
        if not fits:
            return
        low = slot * SLOT_BYTES + draw.choice(fits)
        keys = {(window, target, at // SLOT_BYTES) for begin, end in made.runs(low, count) for at in range(begin, end)}
        if not self.flush_pending(keys):
            return
        buffers, request = self.draw_buffers(careless), self.request()
        operator = self.draw_operator(plan, careless)
        origin_number, origin, origin_count = self.draw_origin(number, made, count)
        self.found.append(("op", (p.KINDS.index(self.kind), draw.choice(self.sites), window.number, target, low // window.unit,
                                  count, number, operator, buffers[0], buffers[1] if self.kind in p.FETCHES else -1,
                                  buffers[2] if self.kind == "compare_and_swap" else -1, request, origin_count, origin_number),
                           window, (made, origin)))
        self.queue.pending |= keys
        self.after(target, request)

    def after(self, target, request):
        draw, window = self.random, self.window
        if request >= 0:
            wait = ("wait", (request,), None, None)
            (self.found if draw.random() < 0.5 else self.waits).append(wait)
        if self.passive and draw.random() < self.flushing and draw.random() >= self.drawer.forgetful:
            self.flush(target)
        elif self.passive and draw.random() < 0.1:
            self.found.append(draw.choice([("flush_local", (window.number, target), window, None),
                                           ("flush_local_all", (window.number,), window, None)]))
