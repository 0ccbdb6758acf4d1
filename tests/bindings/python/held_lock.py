"""On each of two ranks, a thread receives with the interpreter's lock held. The other thread has
released it, and sends. Argument: the library of held_lock.c."""

import ctypes
import sys
import threading

held, released = ctypes.PyDLL(sys.argv[1]), ctypes.CDLL(sys.argv[1])
if not released.begin():
    sys.exit(77)
sender = threading.Thread(target=released.send_to_the_other)
sender.start()
held.receive_from_the_other()
sender.join()
released.finish()
print("arrived")
