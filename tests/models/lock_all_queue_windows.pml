/* Epochs of lock_all of two windows, which their origins begin in any order (lock_all_queue.pml).
 */
#define WINDOWS
#define WRITES 2 /* per target: one while the others are notified, one queued between them */
#define MOST 4
#include "lock_all_queue.pml"
