/* Functions of libc that load and store the program's memory, in front of libc's: copies, strings,
 * files and sockets. They are passed on, and their accesses are seen like loads and stores
 * (local/local_accesses.h). That holds for threads that have called MPI themselves, outside calls
 * of MPI: other threads may be the host's or Oriel's, which copy on behalf of operations.
 *
 * Any code calls these functions, the copies from the process's first instruction on, when this
 * library may not be relocated yet. Until libc's function is found, copies use simple loops. They
 * read only data that needs no relocation. Where nothing of the memory is under way or a window's,
 * a call costs some instructions.
 *
 * This file is compiled without the compiler's knowledge of these functions. */
#include "check/common/slow_copies.h"
#include "check/intercept/wrap.h"
#include "check/local/local_accesses.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* --- accesses --- */

/* Whether an access to the bytes can matter; false in a few instructions. */
static inline __attribute__((always_inline)) bool may_matter(const void *at, size_t len_bytes)
{
    uint64_t low = (uint64_t)(uintptr_t)at;
    return oriel_unlikely(oriel_check_pending != NULL ||
                          !oriel_local_is_unused(low, low + len_bytes));
}

/* This thread is in access_see, whose functions may call copies: compilers make calls of them. */
static _Thread_local bool is_in_access;

static __attribute__((noinline, cold)) void
access_see(const void *at, size_t len_bytes, bool writes, enum oriel_call call, const void *caller)
{
    if (is_in_access)
        return;
    int error = errno;
    is_in_access = true;
    if (oriel_check_running && oriel_check_where.in.depth == 0 && oriel_check_call.stack != 0 &&
        !oriel_check_is_own(caller))
        oriel_local_library_access(at, len_bytes, writes, call, caller);
    is_in_access = false;
    errno = error;
}

static inline __attribute__((always_inline)) void
access_note(const void *at, size_t len_bytes, bool writes, enum oriel_call call, const void *caller)
{
    if (may_matter(at, len_bytes))
        access_see(at, len_bytes, writes, call, caller);
}

#define LOADS(at, len_bytes, call)                                                                 \
    access_note(at, (size_t)(len_bytes), false, ORIEL_CALL_##call, caller)
#define STORES(at, len_bytes, call)                                                                \
    access_note(at, (size_t)(len_bytes), true, ORIEL_CALL_##call, caller)

/* Accesses to the first len_bytes of several buffers. */
static void vector_note(const struct iovec *parts, size_t count, size_t len_bytes, bool writes,
                        enum oriel_call call, const void *caller)
{
    for (size_t i = 0; i < count && len_bytes > 0; i++) {
        size_t some = parts[i].iov_len < len_bytes ? parts[i].iov_len : len_bytes;
        access_note(parts[i].iov_base, some, writes, call, caller);
        len_bytes -= some;
    }
}

static size_t text_bytes(const char *text)
{
    const volatile char *end = text;
    while (*end != '\0')
        end++;
    return (size_t)(end - text) + 1;
}

static size_t text_bytes_within(const char *text, size_t most)
{
    const volatile char *at = text;
    size_t len_bytes = 0;
    while (len_bytes < most && at[len_bytes] != '\0')
        len_bytes++;
    return len_bytes < most ? len_bytes + 1 : most;
}

/* --- libc's functions --- */

/* Opens the definition of a function that is passed on to `next`, found at its first call. The
 * callers of copies are many; those find it when this library starts. */
#define PASSED(type, name, parameters)                                                             \
    typedef type name##_fn parameters;                                                             \
    static _Atomic(name##_fn *) next_##name;                                                       \
    static inline name##_fn *find_##name(void)                                                     \
    {                                                                                              \
        name##_fn *next = atomic_load_explicit(&next_##name, memory_order_relaxed);                \
        if (oriel_likely(next != NULL))                                                            \
            return next;                                                                           \
        next = (name##_fn *)oriel_host_symbol(#name);                                              \
        atomic_store_explicit(&next_##name, next, memory_order_relaxed);                           \
        return next;                                                                               \
    }                                                                                              \
    ORIEL_CHECK_EXPORT type name parameters;                                                       \
    ORIEL_CHECK_EXPORT type name parameters

#define CALLER const void *caller = __builtin_return_address(0)

/* --- copies --- */

/* A function that copies, and its variant with a check of the room at `to`, which _FORTIFY_SOURCE
 * uses. */
_Noreturn void __chk_fail(void);

typedef void *copy_fn(void *to, const void *from, size_t len_bytes);
typedef void *fill_fn(void *to, int value, size_t len_bytes);
static _Atomic(copy_fn *) next_memcpy;
static _Atomic(copy_fn *) next_memmove;
static _Atomic(fill_fn *) next_memset;

static __attribute__((noinline, cold)) void copy_see(void *to, const void *from, size_t len_bytes,
                                                     enum oriel_call call, const void *caller)
{
    access_note(from, len_bytes, false, call, caller);
    access_note(to, len_bytes, true, call, caller);
}

static inline __attribute__((always_inline)) void
copy_note(void *to, const void *from, size_t len_bytes, enum oriel_call call, const void *caller)
{
    if (may_matter(from, len_bytes) || may_matter(to, len_bytes))
        copy_see(to, from, len_bytes, call, caller);
}

static inline char *copy_pass(_Atomic(copy_fn *) *known, void *to, const void *from,
                              size_t len_bytes)
{
    copy_fn *next = atomic_load_explicit(known, memory_order_relaxed);
    return oriel_likely(next != NULL) ? next(to, from, len_bytes)
                                      : oriel_slow_copy(to, from, len_bytes);
}

static inline void *fill_pass(void *to, int value, size_t len_bytes)
{
    fill_fn *next = atomic_load_explicit(&next_memset, memory_order_relaxed);
    return oriel_likely(next != NULL) ? next(to, value, len_bytes)
                                      : oriel_slow_fill(to, value, len_bytes);
}

__attribute__((constructor)) static void copies_find(void)
{
    atomic_store_explicit(&next_memmove, (copy_fn *)oriel_host_symbol("memmove"),
                          memory_order_relaxed);
    atomic_store_explicit(&next_memcpy, (copy_fn *)oriel_host_symbol("memcpy"),
                          memory_order_relaxed);
    atomic_store_explicit(&next_memset, (fill_fn *)oriel_host_symbol("memset"),
                          memory_order_relaxed);
}

#define COPY(name, passed, added)                                                                  \
    ORIEL_CHECK_EXPORT void *name(void *to, const void *from, size_t len_bytes);                   \
    ORIEL_CHECK_EXPORT void *name(void *to, const void *from, size_t len_bytes)                    \
    {                                                                                              \
        CALLER;                                                                                    \
        copy_note(to, from, len_bytes, ORIEL_CALL_##passed, caller);                               \
        return copy_pass(&next_##passed, to, from, len_bytes) added;                               \
    }                                                                                              \
    ORIEL_CHECK_EXPORT void *__##name##_chk(void *to, const void *from, size_t len_bytes,          \
                                            size_t room_bytes);                                    \
    ORIEL_CHECK_EXPORT void *__##name##_chk(void *to, const void *from, size_t len_bytes,          \
                                            size_t room_bytes)                                     \
    {                                                                                              \
        CALLER;                                                                                    \
        if (len_bytes > room_bytes)                                                                \
            __chk_fail();                                                                          \
        copy_note(to, from, len_bytes, ORIEL_CALL_##passed, caller);                               \
        return copy_pass(&next_##passed, to, from, len_bytes) added;                               \
    }
COPY(memcpy, memcpy, )
COPY(memmove, memmove, )
COPY(mempcpy, memcpy, +len_bytes)

ORIEL_CHECK_EXPORT void *memset(void *to, int value, size_t len_bytes);
ORIEL_CHECK_EXPORT void *memset(void *to, int value, size_t len_bytes)
{
    CALLER;
    STORES(to, len_bytes, memset);
    return fill_pass(to, value, len_bytes);
}

ORIEL_CHECK_EXPORT void *__memset_chk(void *to, int value, size_t len_bytes, size_t room_bytes);
ORIEL_CHECK_EXPORT void *__memset_chk(void *to, int value, size_t len_bytes, size_t room_bytes)
{
    CALLER;
    if (len_bytes > room_bytes)
        __chk_fail();
    STORES(to, len_bytes, memset);
    return fill_pass(to, value, len_bytes);
}

/* --- strings --- */

PASSED(char *, strcpy, (char *to, const char *from))
{
    CALLER;
    size_t len_bytes = text_bytes(from);
    LOADS(from, len_bytes, strcpy);
    STORES(to, len_bytes, strcpy);
    return find_strcpy()(to, from);
}

PASSED(char *, __strcpy_chk, (char *to, const char *from, size_t room_bytes))
{
    CALLER;
    size_t len_bytes = text_bytes(from);
    LOADS(from, len_bytes, strcpy);
    STORES(to, len_bytes, strcpy);
    return find___strcpy_chk()(to, from, room_bytes);
}

/* It stores all of the room. */
PASSED(char *, strncpy, (char *to, const char *from, size_t room_bytes))
{
    CALLER;
    LOADS(from, text_bytes_within(from, room_bytes), strncpy);
    STORES(to, room_bytes, strncpy);
    return find_strncpy()(to, from, room_bytes);
}

PASSED(char *, __strncpy_chk, (char *to, const char *from, size_t room_bytes, size_t object_bytes))
{
    CALLER;
    LOADS(from, text_bytes_within(from, room_bytes), strncpy);
    STORES(to, room_bytes, strncpy);
    return find___strncpy_chk()(to, from, room_bytes, object_bytes);
}

/* --- files and sockets: what they store follows from their result --- */

#define STORED(at, call)                                                                           \
    if (got > 0)                                                                                   \
    STORES(at, got, call)

#define READS(name, call, parameters, arguments)                                                   \
    PASSED(ssize_t, name, parameters)                                                              \
    {                                                                                              \
        CALLER;                                                                                    \
        ssize_t got = find_##name() arguments;                                                     \
        STORED(to, call);                                                                          \
        return got;                                                                                \
    }
#define WRITES(name, call, parameters, arguments)                                                  \
    PASSED(ssize_t, name, parameters)                                                              \
    {                                                                                              \
        CALLER;                                                                                    \
        LOADS(from, len_bytes, call);                                                              \
        return find_##name() arguments;                                                            \
    }
READS(read, read, (int fd, void *to, size_t len_bytes), (fd, to, len_bytes))
READS(__read_chk, read, (int fd, void *to, size_t len_bytes, size_t room_bytes),
      (fd, to, len_bytes, room_bytes))
READS(pread, pread, (int fd, void *to, size_t len_bytes, off_t offset), (fd, to, len_bytes, offset))
READS(pread64, pread, (int fd, void *to, size_t len_bytes, off_t offset),
      (fd, to, len_bytes, offset))
READS(recv, recv, (int fd, void *to, size_t len_bytes, int flags), (fd, to, len_bytes, flags))
READS(recvfrom, recvfrom,
      (int fd, void *to, size_t len_bytes, int flags, struct sockaddr *from, socklen_t *from_bytes),
      (fd, to, len_bytes, flags, from, from_bytes))
WRITES(write, write, (int fd, const void *from, size_t len_bytes), (fd, from, len_bytes))
WRITES(pwrite, pwrite, (int fd, const void *from, size_t len_bytes, off_t offset),
       (fd, from, len_bytes, offset))
WRITES(pwrite64, pwrite, (int fd, const void *from, size_t len_bytes, off_t offset),
       (fd, from, len_bytes, offset))
WRITES(send, send, (int fd, const void *from, size_t len_bytes, int flags),
       (fd, from, len_bytes, flags))
WRITES(sendto, sendto,
       (int fd, const void *from, size_t len_bytes, int flags, const struct sockaddr *to,
        socklen_t to_bytes),
       (fd, from, len_bytes, flags, to, to_bytes))

PASSED(ssize_t, readv, (int fd, const struct iovec *parts, int count))
{
    CALLER;
    ssize_t got = find_readv()(fd, parts, count);
    if (got > 0)
        vector_note(parts, (size_t)count, (size_t)got, true, ORIEL_CALL_readv, caller);
    return got;
}

PASSED(ssize_t, writev, (int fd, const struct iovec *parts, int count))
{
    CALLER;
    if (count > 0)
        vector_note(parts, (size_t)count, SIZE_MAX, false, ORIEL_CALL_writev, caller);
    return find_writev()(fd, parts, count);
}

PASSED(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags))
{
    CALLER;
    ssize_t got = find_recvmsg()(fd, message, flags);
    if (got > 0)
        vector_note(message->msg_iov, message->msg_iovlen, (size_t)got, true, ORIEL_CALL_recvmsg,
                    caller);
    return got;
}

PASSED(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags))
{
    CALLER;
    vector_note(message->msg_iov, message->msg_iovlen, SIZE_MAX, false, ORIEL_CALL_sendmsg, caller);
    return find_sendmsg()(fd, message, flags);
}

/* stream: a FILE. */
PASSED(size_t, fread, (void *to, size_t item_bytes, size_t count, void *stream))
{
    CALLER;
    size_t got = find_fread()(to, item_bytes, count, stream);
    STORES(to, got * item_bytes, fread);
    return got;
}

PASSED(size_t, __fread_chk,
       (void *to, size_t room_bytes, size_t item_bytes, size_t count, void *stream))
{
    CALLER;
    size_t got = find___fread_chk()(to, room_bytes, item_bytes, count, stream);
    STORES(to, got * item_bytes, fread);
    return got;
}

PASSED(size_t, fwrite, (const void *from, size_t item_bytes, size_t count, void *stream))
{
    CALLER;
    LOADS(from, item_bytes * count, fwrite);
    return find_fwrite()(from, item_bytes, count, stream);
}
