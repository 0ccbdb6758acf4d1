/* The functions that complete requests, in rotation, each with arrays that contain empty
 * entries. */
#include "fuzz.h"

enum { SLOTS = 4 };

/* One call of one function; returns whether it completed the request in the given slot. */
static bool turn(int function, MPI_Request requests[SLOTS], int slot, int *code)
{
    MPI_Status statuses[SLOTS];
    int indices[SLOTS], done = 1, count = 1;
    switch (function) {
    case 0: *code = FUZZ(Wait, &requests[slot], statuses); break;
    case 1: *code = FUZZ(Test, &requests[slot], &done, statuses); break;
    case 2: *code = FUZZ(Waitall, SLOTS, requests, statuses); break;
    case 3: *code = FUZZ(Testall, SLOTS, requests, &done, statuses); break;
    case 4: *code = FUZZ(Waitany, SLOTS, requests, indices, statuses); break;
    case 5: *code = FUZZ(Testany, SLOTS, requests, indices, &done, statuses); break;
    case 6: *code = FUZZ(Waitsome, SLOTS, requests, &count, indices, statuses); break;
    case 7: *code = FUZZ(Testsome, SLOTS, requests, &count, indices, statuses); break;
    default: *code = FUZZ(Request_get_status, requests[slot], &done, statuses); break;
    }
    return done && count == 1 && (function == 8 || requests[slot] == MPI_REQUEST_NULL);
}

bool fuzz_complete(MPI_Request request)
{
    static int calls;
    enum { FUNCTIONS = 9 };
    MPI_Request requests[SLOTS] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                                   MPI_REQUEST_NULL};
    int slot = calls % SLOTS, function = calls % FUNCTIONS, code = MPI_SUCCESS;
    calls++;
    requests[slot] = request;
    while (code == MPI_SUCCESS && !turn(function, requests, slot, &code))
        ;
    if (code == MPI_SUCCESS && requests[slot] != MPI_REQUEST_NULL)
        code = MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS;
}
