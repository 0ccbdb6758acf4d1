"""What else uses the node's processors: a benchmark of a busy node is one of the other programs too.

Everything is read from /proc and /sys; what is not there is unknown, not a fault. Nothing of the benchmark runs while busy() looks."""

import glob
import os
import time

BUSY_LEAST = 0.2  # processors' worth of other programs that is worth a warning
STEAL_LEAST = 0.01  # share of the processors' time that the hypervisor gave to other machines
LOOK_S = 0.4


def _read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _processor_ticks():
    """The sums over all processors since the start: (used by programs, stolen, all), or None."""
    words = _read("/proc/stat").partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu" or not all(word.isdigit() for word in words[1:9]):
        return None
    user, nice, system, idle, waiting, irq, softirq, steal = map(int, words[1:9])
    used = user + nice + system + irq + softirq
    return used, steal, used + idle + waiting + steal


def _average():
    """The load averages of 1, 5 and 15 minutes, and the number of runnable threads; or None."""
    words = _read("/proc/loadavg").split()
    try:
        return [float(word) for word in words[:3]], int(words[3].partition("/")[0])
    except (IndexError, ValueError):
        return None


def _numbers(pattern):
    texts = [_read(path).strip() for path in sorted(glob.glob(pattern))]
    return [int(text) for text in texts if text.isdigit()]


class Load:
    """The load before, between and after the runs, and what is worth a warning."""

    def __init__(self):
        self.facts = {}
        self.busiest = 0.0  # processors that other programs used, the most of all looks
        self.begin = _processor_ticks()
        self.throttled = self._throttled()

    @staticmethod
    def _throttled():
        return sum(_numbers("/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count"))

    def look(self):
        """Called while no job of the benchmark runs. Returns the processors in use by other programs."""
        before = _processor_ticks()
        if before is None:
            return None
        time.sleep(LOOK_S)
        after = _processor_ticks()
        busy = (after[0] - before[0]) / max(after[2] - before[2], 1) * os.cpu_count()
        self.busiest = max(self.busiest, busy)
        average = _average()
        if average and not self.facts:  # later, the benchmark itself is in the averages
            self.facts = {"load_average": average[0], "runnable": average[1] - 1}
        return busy

    def steal(self):
        """The share of the processors' time since the start that went to other machines."""
        now = _processor_ticks()
        return (now[1] - self.begin[1]) / max(now[2] - self.begin[2], 1) if now and self.begin else None

    def record(self):
        """For the results."""
        steal, limits = self.steal(), self._frequencies()
        return dict(self.facts, other_processors=round(self.busiest, 2), steal=None if steal is None else round(steal, 4),
                    governors=sorted({_read(path).strip() for path in
                                      glob.glob("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")}),
                    frequency_khz=limits, throttled=self._throttled() - self.throttled)

    @staticmethod
    def _frequencies():
        """[allowed, possible] maximum in kHz, or None."""
        allowed = _numbers("/sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq")
        possible = _numbers("/sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq")
        return [min(allowed), max(possible)] if allowed and possible else None

    def warnings(self):
        record = self.record()
        if self.busiest >= BUSY_LEAST:
            yield ("the node is loaded: other programs use %.1f of %d processors (load average %s); times are too long, and repeat badly"
                   % (self.busiest, os.cpu_count(), " ".join("%.1f" % value for value in record.get("load_average", [])) or "unknown"))
        if record["steal"] and record["steal"] >= STEAL_LEAST:
            yield "the hypervisor gave %.0f %% of the processors' time to other machines" % (100 * record["steal"])
        if record["frequency_khz"] and record["frequency_khz"][0] < record["frequency_khz"][1]:
            yield "the processors' frequency is limited to %.1f of %.1f GHz" % tuple(khz / 1e6 for khz in record["frequency_khz"])
        if record["throttled"] > 0:
            yield "the processors were too hot and slowed down, %d times" % record["throttled"]
