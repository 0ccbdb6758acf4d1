/* The functions that complete requests, in rotation, each with arrays that contain empty
 * entries. */
#include "fuzz.h"

enum { PLACES = 4 };

/* One call of one function; returns whether it completed the request at the given place. */
static bool turn(int way, MPI_Request requests[PLACES], int place, int *code)
{
    MPI_Status statuses[PLACES];
    int indices[PLACES], done = 1, count = 1;
    switch (way) {
    case 0: *code = FUZZ(Wait, &requests[place], statuses); break;
    case 1: *code = FUZZ(Test, &requests[place], &done, statuses); break;
    case 2: *code = FUZZ(Waitall, PLACES, requests, statuses); break;
    case 3: *code = FUZZ(Testall, PLACES, requests, &done, statuses); break;
    case 4: *code = FUZZ(Waitany, PLACES, requests, indices, statuses); break;
    case 5: *code = FUZZ(Testany, PLACES, requests, indices, &done, statuses); break;
    case 6: *code = FUZZ(Waitsome, PLACES, requests, &count, indices, statuses); break;
    case 7: *code = FUZZ(Testsome, PLACES, requests, &count, indices, statuses); break;
    default: *code = FUZZ(Request_get_status, requests[place], &done, statuses); break;
    }
    return done && count == 1 && (way == 8 || requests[place] == MPI_REQUEST_NULL);
}

bool fuzz_complete(MPI_Request request)
{
    static int calls;
    enum { WAYS = 9 };
    MPI_Request requests[PLACES] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                                    MPI_REQUEST_NULL};
    int place = calls % PLACES, way = calls % WAYS, code = MPI_SUCCESS;
    calls++;
    requests[place] = request;
    while (code == MPI_SUCCESS && !turn(way, requests, place, &code))
        ;
    if (code == MPI_SUCCESS && requests[place] != MPI_REQUEST_NULL)
        code = MPI_Wait(&requests[place], MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS;
}
