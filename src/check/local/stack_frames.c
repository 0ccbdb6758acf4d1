/* Buffers in frames that have ended. A thread's stack grows downwards, and nothing below its stack
 * pointer is alive. So a buffer that is still needed and lies between the lower end of the thread's
 * stack and the stack pointer of an MPI call was a local variable of a function that has returned
 * since.
 *
 * It is noticed at the thread's next MPI call whose caller has a higher stack pointer. If another
 * function's frame covers the buffer by then, it is not noticed. A call from another stack (of
 * a coroutine, or of sigaltstack) notices nothing. */
#include "check/local/local_accesses.h"
#include "check/local/window_memory.h"
#include "check/order/order.h"
#include "check/report/call_sites.h"

#include <pthread.h>

/* The stack that the system gave this thread. high 0: not asked for yet; low == high: unknown. */
static _Thread_local struct {
    uintptr_t low;
    uintptr_t high;
} stack;

static void stack_find(void)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t len_bytes = 0;
    stack.low = stack.high = 1;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &len_bytes) == 0) {
        stack.low = (uintptr_t)low;
        stack.high = stack.low + len_bytes;
    }
    pthread_attr_destroy(&attributes);
}

/* Windows over local variables are few, and outside the stack otherwise. */
static bool frames_have_windows(uintptr_t frame)
{
    return stack.high != 0 && !oriel_regions_are_elsewhere(stack.low, frame);
}

void oriel_check_frames(const void *address, uintptr_t frame)
{
    if (!oriel_local_needs_buffers() && !frames_have_windows(frame))
        return;
    if (stack.high == 0)
        stack_find();
    if (frame <= stack.low || frame > stack.high)
        return;
    struct oriel_site site = {.address = (uint64_t)(uintptr_t)address,
                              .world_rank = (uint32_t)oriel_order_rank(),
                              .call = ORIEL_CALL_frame_end};
    oriel_local_end_frames(stack.low, frame, &site);
}
