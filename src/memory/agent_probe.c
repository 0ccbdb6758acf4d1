/* Probes the agent by starting it in this process and having a child process request one page
 * through the real slots. Unlike the probes of probe.c, this one needs the memory file and the
 * transport. */
#include "memory/agent_area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 10, MARK = 0x6f };

static void probe_set_result(struct oriel_probe *out, bool available, const char *what,
                             const char *why)
{
    out->available = available;
    snprintf(out->detail, sizeof out->detail, "%.120s%.120s", what, why);
}

/* Maps the parent's agent from its memory file, as a peer does. The mapping inherited by fork is a
 * private copy. */
static struct oriel_agent *agent_map(uint64_t offset)
{
    char path[64];
    const struct oriel_identity *parent = oriel_file_identity();
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)parent->pid, (int)parent->memory_fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char *base = fd < 0 ? MAP_FAILED
                        : mmap(NULL, offset + sizeof(struct oriel_agent), PROT_READ | PROT_WRITE,
                               MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        oriel_fail(ORIEL_E_OTHER, "cannot open and map %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return base != MAP_FAILED ? (struct oriel_agent *)(base + offset) : NULL;
}

/* Runs in the child, where the private copy of the page already holds other bytes. Writes an error
 * message, or an empty string, to the parent. */
static void child_request_page(uint64_t agent_offset, char *page, int report_fd)
{
    static char found[ORIEL_PAGE_BYTES];
    static char wanted[ORIEL_PAGE_BYTES];
    struct oriel_remote remote = {.address = (uint64_t)(uintptr_t)page,
                                  .pid = oriel_file_identity()->pid};
    const char *wrong = "";
    memset(wanted, MARK, sizeof wanted);
    memset(page, 0, ORIEL_PAGE_BYTES);
    alarm(LIMIT_S);
    remote.agent = agent_map(agent_offset);
    if (remote.agent == NULL ||
        oriel_transport_agent.read(&remote, found, sizeof found) != ORIEL_OK)
        wrong = oriel_fail_message();
    else if (memcmp(found, wanted, sizeof found) != 0)
        wrong = "the agent returned wrong data";
    ssize_t len_bytes = write(report_fd, wrong, strlen(wrong) + 1);
    _exit(len_bytes > 0 ? 0 : 1);
}

static void request_by_child(struct oriel_probe *out, uint64_t agent_offset, char *page)
{
    int ends[2];
    char wrong[200] = "";
    if (pipe2(ends, O_CLOEXEC) != 0) {
        probe_set_result(out, false, "cannot create a pipe: ", strerror(errno));
        return;
    }
    pid_t child = fork();
    int reason = errno;
    if (child == 0)
        child_request_page(agent_offset, page, ends[1]);
    close(ends[1]);
    ssize_t len_bytes = child > 0 ? read(ends[0], wrong, sizeof wrong - 1) : 0;
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (child < 0)
        probe_set_result(out, false, "cannot create a child process: ", strerror(reason));
    else if (len_bytes <= 0)
        probe_set_result(out, false, "the child process got no reply", "");
    else if (wrong[0] != '\0')
        probe_set_result(out, false, wrong, "");
    else
        probe_set_result(out, true, "one page copied for another process by a thread of its owner",
                         "");
}

static void agent_try(struct oriel_probe *out, char *page)
{
    if (oriel_file_start() != ORIEL_OK || oriel_agent_open() != ORIEL_OK) {
        probe_set_result(out, false, oriel_fail_message(), "");
        return;
    }
    const struct oriel_file_header *header = (const struct oriel_file_header *)oriel_file_base();
    request_by_child(out, header->agent_offset, page);
    oriel_agent_close();
}

/* The page is mapped before the agent starts. The child's request orders the mapping before
 * the agent's read, but no race detector sees that. */
void oriel_probe_agent(struct oriel_probe *out)
{
    out->name = "agent";
    char *page =
        mmap(NULL, ORIEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        probe_set_result(out, false, "cannot map a page: ", strerror(errno));
        return;
    }
    memset(page, MARK, ORIEL_PAGE_BYTES);
    agent_try(out, page);
    munmap(page, ORIEL_PAGE_BYTES);
}
