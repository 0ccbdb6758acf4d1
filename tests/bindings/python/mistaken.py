"""One-sided code with errors. A comment "FINDS" marks each line that a finding must name, with the
rule and the function. The window's creation and some calls are marked too, for the statistics."""

import threading

import numpy as np
import oriel
from job import MPI, rank, world


def frees_a_buffer(win):
    values = np.zeros(5000, dtype="i4")
    win.Put([values, 4, MPI.INT], 0, 8 + 4 * rank)  # FINDS L3 frees_a_buffer
    del values  # FINDS L3 frees_a_buffer
    win.Flush(0)  # CALLS flush frees_a_buffer


class Thread(threading.Thread):
    def __init__(self, win):
        super().__init__()
        self.win = win

    def run(self):
        try:
            self.win.Lock(0)  # FINDS E3 run
        except MPI.Exception:  # a host or Oriel may refuse it
            pass


def nested_lock(win):
    thread = Thread(win)
    thread.start()
    thread.join()


def main():
    value = np.ones(1, dtype="i4")
    info = MPI.Info.Create()
    info.Set("oriel_notifications", "1")
    win = MPI.Win.Allocate(1000, 4, info=info, comm=world)  # CREATES main
    win.Lock_all()  # CALLS lock_all main
    frees_a_buffer(win)
    win.Put([value, MPI.INT], 0, 0)  # FINDS C1 main
    win.Flush(0)
    nested_lock(win)
    oriel.Put_notify(win, None, rank, 0)
    oriel.Win_notify_wait(win, 0)  # CALLS notify_wait main
    win.Unlock_all()  # CALLS unlock_all main
    win.Free()


main()
