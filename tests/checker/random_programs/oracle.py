"""Computes the errors in a generated program by brute force. Each step knows the steps that happen
before it; each operation is compared with each other operation, byte by byte.

Some orders depend on timing: which rank acquires a lock first, or which value a fetch reads. In
a program that runs in turns, all orders are known, except for fetches that may read as late as
their flush. Otherwise there are two answers. The least order holds in every run; the most order
is the maximum that a run can have. A conflict under the most order must be found. A pair without
conflict under the least order must not be found."""

import collections
import dataclasses

import program as p

INFINITE = 1 << 60
MESSAGE_SITES = {"send": "send_from", "recv": "receive_into"}
LATE_WORDS = 16  # late words that a window records at most
# completing calls that may wait: their turn ends when they start (steps.c)
PUBLISHES = {"fence", "complete"}
COMPLETIONS = {"flush", "flush_all", "flush_local", "flush_local_all", "unlock", "unlock_all", "fence", "complete"}
# rules that report a conflict whose first origin seems to have mistaken a call for a flush
MISTAKES = {"E17", "E18", "E19"}


@dataclasses.dataclass
class Access:
    """An access to a target, or to an origin buffer (local is then true)."""
    step: p.Step
    kind: str        # put, get, accumulate, load, store
    byte_ids: frozenset
    done: float      # the line that completes it
    op: int = None
    basic: int = None
    site: str = None
    local: bool = False
    opening: str = None  # the call that opened its epoch

    @property
    def line(self):
        return self.step.line

    @property
    def rank(self):
        return self.step.rank


def site_of(step):
    return f"{p.KINDS[step.fields[0]]}_{step.fields[1]}"


def in_arena(rank, runs):
    return frozenset((rank, "arena", byte) for low, high in runs for byte in range(low, high))


def mask_ranks(mask):
    return [i for i in range(32) if mask >> i & 1]


class Oracle:
    def __init__(self, program):
        self.program = program
        self.steps = program.steps
        self.first = self.steps[0].line
        self.accesses, self.buffers = [], []
        self.make_accesses()
        self.until = {}  # line -> the line before which its turn ends
        coming = {}
        for step in reversed(self.steps):
            self.until[step.line] = coming.get(step.rank, INFINITE) if step.what in PUBLISHES else step.line
            coming[step.rank] = step.line
        self.least = self.knowledge(self.edges(most=False))
        prompt = all(program.is_prompt(step.window) for step in self.steps if step.what == "window")
        self.most = self.least if program.in_turns and prompt else self.knowledge(self.edges(most=True))

    # --- operations ---

    def make_accesses(self):
        """Sets the lines that complete each access at the target and, for its buffers, at the
        origin."""
        # per rank: (window, target, request, access, completes locally)
        pending = collections.defaultdict(list)
        opened, windows = {}, {}
        for step in self.steps:
            rank, what = step.rank, step.what
            if what in ("window", "free"):
                windows[rank, step.window.number] = step.window
            if what == "free":
                del windows[rank, step.window.number]
            if what in ("lock", "lock_all", "fence", "start"):
                opened[rank, step.window, step.fields[1] if what == "lock" else None] = "MPI_Win_" + what
            elif what == "unlock":
                del opened[rank, step.window, step.fields[1]]
            if what == "op":
                opening = opened.get((rank, step.window, step.fields[3])) or opened[rank, step.window, None]
                self.add_operation(step, pending[rank], opening, [w for (r, _), w in windows.items() if r == rank])
            elif what in ("send", "recv"):
                self.buffers.append(Access(step, "load" if what == "send" else "store",
                                           in_arena(rank, [(step.fields[1], step.fields[1] + 4)]), step.line,
                                           site=MESSAGE_SITES[what], local=True))
                continue
            elif what != "wait" and step.window is None:
                continue
            left = []
            for window, target, request, access, by_local in pending[rank]:
                mine = step.window == window
                if what == "wait":
                    ends = by_local and request == step.fields[0]
                elif what in ("flush", "unlock"):
                    ends = mine and step.fields[1] == target
                elif what in ("flush_all", "unlock_all", "fence", "complete"):
                    ends = mine
                elif what == "flush_local":
                    ends = mine and by_local and step.fields[1] == target
                else:
                    ends = what == "flush_local_all" and mine and by_local
                if ends:
                    access.done = step.line
                else:
                    left.append((window, target, request, access, by_local))
            pending[rank] = left

    @staticmethod
    def window_part(byte_ids, windows):
        """For a buffer partly in window memory, the part in window memory."""
        inside = frozenset(byte_id for byte_id in byte_ids
                           if any(window.is_in_arena() and window.at <= byte_id[2] < window.at + window.size for window in windows))
        return inside or byte_ids

    def add_operation(self, step, pending, opening, windows):
        kind_number, _, _, target, disp, count, _, op, origin, result, compare, request, origin_count, _ = step.fields
        kind, window, site = p.KINDS[kind_number], step.window, site_of(step)
        at = disp * window.unit
        general = "put" if kind in p.PUTS else "get" if kind in p.GETS else "accumulate"
        access = Access(step, general, frozenset(window.byte_id(target, byte) for low, high in step.type.runs(at, count)
                                                 for byte in range(low, high)), INFINITE, site=site, opening=opening)
        if general == "accumulate":
            access.basic = step.type.basic
            access.op = p.SWAP if kind == "compare_and_swap" else op
        self.accesses.append(access)
        pending.append((window, target, request, access, general == "get" or kind in p.FETCHES))
        if general == "accumulate" and op == p.NO_OP and kind != "compare_and_swap":
            origin = -1  # not used
        for address, writes, items, made in ((origin, general == "get", origin_count, step.origin),
                                             (compare, False, 1, step.type), (result, True, count, step.type)):
            if address < 0:
                continue
            byte_ids = self.window_part(in_arena(step.rank, made.runs(address, items)), windows)
            buffer = Access(step, "store" if writes else "load", byte_ids, INFINITE, site=site, local=True, opening=opening)
            self.buffers.append(buffer)
            pending.append((window, target, request, buffer, True))

    # --- order ---

    def edges(self, most):
        """Pairs of lines (a, b): the steps complete before a happen before b."""
        found = []
        together = collections.defaultdict(list)  # collectives: the n-th of each rank match
        counts = collections.Counter()
        messages = collections.defaultdict(list)
        for step in self.steps:
            if step.what in ("barrier", "allreduce", "bcast", "fence", "free", "window", "program"):
                key = (step.what, step.window.number if step.what == "fence" else None)
                together[key, counts[key, step.rank]].append(step)
                counts[key, step.rank] += 1
            elif step.what == "send":
                messages[step.rank, step.fields[0]].append(step)
            elif step.what == "recv":
                found.append((messages[step.fields[0], step.rank].pop(0).line, step.line))
        for (what, _), group in ((key[0], group) for key, group in together.items()):
            for a in group:
                if what == "bcast" and a.rank != a.fields[0]:
                    continue
                found.extend((a.line, b.line) for b in group if a is not b)
        found.extend(self.active_edges())
        found.extend(self.lock_edges(found, most))
        found.extend(self.word_edges(found, most))
        return found

    def active_edges(self):
        """Posts to starts and completes to waits: the n-th of each pair match."""
        found = []
        opened_by, consumed = collections.defaultdict(list), collections.Counter()
        started, posted = {}, {}
        later = []
        for step in self.steps:
            key = (step.window, step.rank)
            if step.what == "post":
                posted[key] = mask_ranks(step.fields[1])
                for origin in posted[key]:
                    opened_by["post", step.window, step.rank, origin].append(step.line)
            elif step.what == "start":
                started[key] = mask_ranks(step.fields[1])
                later.extend((("post", step.window, target, step.rank), step.line) for target in started[key])
            elif step.what == "complete":
                for target in started[key]:
                    opened_by["complete", step.window, step.rank, target].append(step.line)
            elif step.what == "wait_posted":
                later.extend((("complete", step.window, origin, step.rank), step.line) for origin in posted[key])
        for key, line in later:
            found.append((opened_by[key][consumed[key]], line))
            consumed[key] += 1
        return found

    def lock_edges(self, found, most):
        """From each unlock to the later locks that it excludes."""
        epochs, opened = [], {}
        for step in self.steps:
            if step.what in ("lock", "lock_all"):
                target = step.fields[1] if step.what == "lock" else None
                exclusive = step.what == "lock" and step.fields[2] == 1
                opened[step.rank, step.window, target] = (step.line, exclusive)
            elif step.what in ("unlock", "unlock_all"):
                target = step.fields[1] if step.what == "unlock" else None
                line, exclusive = opened.pop((step.rank, step.window, target))
                epochs.append((step.rank, step.window, target, exclusive, line, step.line))
        pairs = [(a, b) for a in epochs for b in epochs
                 if a[0] != b[0] and a[1] == b[1] and (a[3] or b[3]) and (a[2] is None or b[2] is None or a[2] == b[2])]
        if self.program.in_turns:
            return [(a[5], b[4]) for a, b in pairs if a[5] < b[4]]
        if not pairs:
            return []
        knows = self.knowledge(found)
        sure = [(a[5], b[4]) for a, b in pairs if self.reaches(knows, a[4], b[4])]
        return [(a[5], b[4]) for a, b in pairs if not self.reaches(knows, b[4], a[4])] if most else sure

    def word_edges(self, found, most):
        """From accumulates that write to accumulates that fetch. Single elements match by address.
        All accumulates of several elements at a target share one word."""
        givers, takers = collections.defaultdict(list), collections.defaultdict(list)
        for access in self.accesses:
            if access.kind != "accumulate":
                continue
            step = access.step
            target, at, count = step.fields[3], step.fields[4] * step.window.unit, step.fields[5]
            several = count * step.type.elements != 1
            if access.op != p.NO_OP:
                givers[step.window, target, None if several else at].append(step)
            if p.KINDS[step.fields[0]] in p.FETCHES:
                size = p.BASIC_BYTES[step.type.basic]
                takers[step.window, target, None].append(step)
                for low, high in step.type.runs(at, count):
                    for offset in range(low, high, size):
                        takers[step.window, target, offset].append(step)
        pairs = [(a.line, b.line) for word, taking in takers.items() for b in taking for a in givers.get(word, ())
                 if a.rank != b.rank]
        if most:
            pairs += self.late_pairs(givers, takers)
        if self.program.in_turns:
            return [(a, b) for a, b in pairs if a < self.until[b]]
        if not pairs or not most:
            return []
        knows = self.knowledge(found)
        return [(a, b) for a, b in pairs if not self.reaches(knows, b, a)]

    def late_pairs(self, givers, takers):
        """The same pairs at the call that completes the fetch, where the fetch may have read
        then."""
        # per rank and window: the words that each fetch reads
        taking = collections.defaultdict(set)
        for word, steps in takers.items():
            for step in steps:
                if not self.program.is_prompt(step.window):
                    taking[step.rank, step.window].add((step.line, word))
        pairs = []
        for (rank, window), words in taking.items():
            done = {access.line: access.done for access in self.accesses if access.rank == rank and access.step.window == window}
            for step in self.steps:
                if step.rank != rank or step.window != window or step.what not in COMPLETIONS:
                    continue
                late = [word for line, word in words if line < step.line <= done[line]]
                if len(late) > LATE_WORDS:  # all steps of all ranks
                    pairs += [(other.line, step.line) for other in self.steps if other.rank != rank]
                pairs += [(a.line, step.line) for word in late for a in givers.get(word, ()) if a.rank != rank]
        return pairs

    def knowledge(self, edges):
        """For each line, the lines that happen before its operations, as a bit set. Order that a
        line acquires holds only after the line."""
        first, count = self.first, len(self.steps)
        consumed = collections.defaultdict(list)
        for giver, taker in edges:
            consumed[taker - first].append(giver - first)
        before, after_line = [0] * count, [0] * count
        changed = True
        while changed:
            changed = False
            last = {}
            for number, step in enumerate(self.steps):
                known = before[number] | 1 << number
                if step.rank in last:
                    known |= after_line[last[step.rank]]
                after = after_line[number] | known
                for giver in consumed[number]:
                    after |= before[giver]
                if known != before[number] or after != after_line[number]:
                    changed = True
                before[number], after_line[number] = known, after
                last[step.rank] = number
        return before

    def reaches(self, knows, line, other):
        """Whether everything complete at the start of line happens before the operations of
        other."""
        return knows[other - self.first] >> (line - self.first) & 1 == 1

    def is_ordered(self, knows, a, b):
        """Whether a is complete before b starts."""
        if a.done == INFINITE:
            return False
        if a.rank == b.rank:
            return a.done < b.line
        return self.reaches(knows, a.done, b.line)

    def is_unordered(self, knows, a, b):
        return not self.is_ordered(knows, a, b) and not self.is_ordered(knows, b, a)


# --- the rules ---

def only_reads(access):
    return access.kind in ("get", "load") or (access.kind == "accumulate" and access.op == p.NO_OP)


def same_element(a, b):
    return a == b or (a not in p.REALS and b not in p.REALS and p.BASIC_BYTES[a] == p.BASIC_BYTES[b])


def conflicts(a, b):
    """Whether two accesses to the same bytes must be ordered (docs/reference/findings.md, C1 to C3)."""
    if only_reads(a) and only_reads(b):
        return False
    if a.kind != "accumulate" or b.kind != "accumulate":
        return True
    if not same_element(a.basic, b.basic):
        return True
    if a.rank == b.rank or a.op == b.op:
        return False
    hints = {a.step.window.hint, b.step.window.hint}
    if any(x.op == p.SWAP and x.step.window.hint == 0 for x in (a, b)):
        return False
    if p.NO_OP in (a.op, b.op):
        return 1 in hints
    return True


def supersedes(later, earlier):
    """Whether later, ordered after earlier, conflicts with everything that earlier conflicts
    with."""
    if later.kind in ("put", "store"):
        return True
    if later.kind != "accumulate":
        return only_reads(earlier)
    return earlier.kind == "accumulate" and (earlier.op in (later.op, p.NO_OP))


def rules(a, b):
    """The rules that may report the pair."""
    if a.local and b.local:
        return {"C4"}
    kinds = {a.kind, b.kind}
    if kinds == {"accumulate"}:
        return {"C3", "H3"}
    if "accumulate" in kinds and not (a.local or b.local):
        return {"C2"}
    return {"C1"}
