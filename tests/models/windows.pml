/* Epochs of lock_all of two windows, which their origins begin in any order (shares.pml). */
#define WINDOWS
#define WRITES 2 /* one of each target while the others are told, one to stand between them */
#define MOST 4
#include "shares.pml"
