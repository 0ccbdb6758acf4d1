/* Reads settings files. A file is read whole, up to a limit, and must be text. Each line is empty,
 * a comment, or NAME = VALUE. Blanks around both do not count. A # begins a comment at the
 * beginning of a line or after a blank.
 *
 * A name can lead to anything, so nothing is opened but regular files (checked_open.h): a pipe
 * would wait for a writer. The folder's file must belong to this user or to root, and other users
 * may not write it: a job that is started in a shared folder does not obey them. */
#include "base/settings.h"

#include "base/checked_open.h"
#include "base/prefix.h"
#include "base/reserve_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder in which the process was started, or "". The program may have changed its folder when
 * the options are read, and `oriel run` must find the same file as the program. */
static char start_folder[PATH_MAX];

__attribute__((constructor)) static void start_folder_record(void)
{
    if (getcwd(start_folder, sizeof start_folder) == NULL)
        start_folder[0] = '\0';
}

__attribute__((format(printf, 3, 4))) static void
file_state_set(struct oriel_settings_file *file, bool is_refused, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(file->state, sizeof file->state, format, args);
    va_end(args);
    file->is_refused = is_refused;
}

/* Whether a file may decide about this process's job. */
static bool file_is_trusted(struct oriel_settings_file *file, const struct stat *about)
{
    if (file->kind != ORIEL_SETTINGS_FOLDER)
        return true;
    if (about->st_uid != geteuid() && about->st_uid != 0)
        file_state_set(file, true, "belongs to another user (uid %u)", (unsigned)about->st_uid);
    else if ((about->st_mode & S_IWOTH) != 0)
        file_state_set(file, true, "may be written by every user: use chmod o-w");
    else
        return true;
    return false;
}

/* Returns a descriptor that can read, or -1 with the state set. */
static int file_open(struct oriel_settings_file *file)
{
    struct stat about;
    int checked_fd = oriel_checked_path_open(AT_FDCWD, file->path, &about);
    if (checked_fd < 0) {
        /* The system's and the user's own files are optional, and so is access to their folders. */
        bool is_absent = errno == ENOENT || errno == ENOTDIR || errno == EACCES;
        file_state_set(file, !is_absent || file->kind == ORIEL_SETTINGS_NAMED, "%s",
                       errno != 0 ? strerror(errno) : "is not a regular file");
        return -1;
    }
    file->device = about.st_dev;
    file->inode = about.st_ino;
    if (!file_is_trusted(file, &about)) {
        close(checked_fd);
        return -1;
    }
    int fd = oriel_checked_reopen(checked_fd, O_RDONLY);
    if (fd < 0)
        file_state_set(file, true, "%s", strerror(errno));
    return fd;
}

/* Returns the number of bytes read, or -1 with errno. */
static ssize_t fd_read(int fd, char *out, size_t room)
{
    size_t used = 0;
    for (ssize_t len_bytes = 1; used < room && len_bytes != 0;) {
        len_bytes = read(fd, out + used, room - used);
        if (len_bytes < 0 && errno != EINTR)
            return -1;
        used += len_bytes > 0 ? (size_t)len_bytes : 0;
    }
    return (ssize_t)used;
}

/* The line with the first byte that no text has; 0 if there is none. */
static unsigned binary_line_find(const char *text, size_t len_bytes)
{
    unsigned line = 1;
    for (size_t i = 0; i < len_bytes; i++) {
        unsigned char byte = (unsigned char)text[i];
        if ((byte < ' ' && strchr("\t\n\r", byte) == NULL) || byte == 0 || byte == 0x7f)
            return line;
        line += byte == '\n';
    }
    return 0;
}

static void file_load(struct oriel_settings_file *file, int fd)
{
    char *text = malloc(ORIEL_SETTINGS_FILE_BYTES + 1);
    ssize_t len_bytes = text == NULL ? -1 : fd_read(fd, text, ORIEL_SETTINGS_FILE_BYTES + 1);
    unsigned binary_line = len_bytes < 0 ? 0 : binary_line_find(text, (size_t)len_bytes);
    if (len_bytes < 0)
        file_state_set(file, true, "%s", strerror(errno));
    else if (len_bytes > ORIEL_SETTINGS_FILE_BYTES)
        file_state_set(file, true, "is larger than %d KiB", ORIEL_SETTINGS_FILE_BYTES / 1024);
    else if (binary_line != 0)
        file_state_set(file, true, "is not text (line %u)", binary_line);
    else {
        text[len_bytes] = '\0';
        file->text = text;
        file_state_set(file, false, "read");
        return;
    }
    free(text);
}

void oriel_settings_file_read(struct oriel_settings_file *file)
{
    file->text = NULL;
    file->inode = 0;
    int fd = file_open(file);
    if (fd >= 0) {
        file_load(file, fd);
        close(fd);
    }
    oriel_reserve_fd_restore();
}

static char *path_join(const char *folder, const char *rest)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, rest) < 0 ? NULL : path;
}

/* Returns a path to be freed, or NULL if there is none. */
static char *path_of(enum oriel_settings_kind kind)
{
    if (kind == ORIEL_SETTINGS_NAMED) {
        const char *named = getenv("ORIEL_CONFIG");
        if (named == NULL || named[0] == '\0')
            return NULL;
        bool is_whole = named[0] == '/' || start_folder[0] == '\0';
        return is_whole ? strdup(named) : path_join(start_folder, named);
    }
    if (kind == ORIEL_SETTINGS_FOLDER)
        return start_folder[0] == '/' ? path_join(start_folder, "oriel.conf") : NULL;
    if (kind == ORIEL_SETTINGS_USER) {
        const char *folder = getenv("XDG_CONFIG_HOME");
        const char *home = getenv("HOME");
        if (folder != NULL && folder[0] == '/')
            return path_join(folder, "oriel/oriel.conf");
        return home != NULL && home[0] == '/' ? path_join(home, ".config/oriel/oriel.conf") : NULL;
    }
    char prefix[PATH_MAX];
    if (!oriel_prefix_find(prefix))
        return NULL;
    return path_join(strcmp(prefix, "/usr") == 0 ? "" : prefix, "etc/oriel.conf");
}

/* The file of an earlier kind that is the same one, or NULL. */
static const struct oriel_settings_file *file_find_same(const struct oriel_settings *settings,
                                                        const struct oriel_settings_file *file)
{
    for (const struct oriel_settings_file *other = settings->files; other < file; other++)
        if (other->text != NULL && other->device == file->device && other->inode == file->inode)
            return other;
    return NULL;
}

void oriel_settings_open(struct oriel_settings *out)
{
    bool is_privileged = getauxval(AT_SECURE) != 0;
    memset(out, 0, sizeof *out);
    for (int kind = 0; kind < ORIEL_SETTINGS_KINDS; kind++) {
        struct oriel_settings_file *file = &out->files[kind];
        file->kind = (enum oriel_settings_kind)kind;
        file->path = path_of(file->kind);
        if (file->path == NULL)
            continue;
        if (is_privileged && kind != ORIEL_SETTINGS_SYSTEM) {
            file_state_set(file, kind == ORIEL_SETTINGS_NAMED,
                           "is not read by a program with privileges of its own");
            continue;
        }
        oriel_settings_file_read(file);
        const struct oriel_settings_file *same = file_find_same(out, file);
        if (file->text != NULL && same != NULL) {
            free(file->text);
            file->text = NULL;
            file_state_set(file, false, "read as %.100s", same->path);
        }
    }
}

void oriel_settings_close(struct oriel_settings *settings)
{
    for (int kind = 0; kind < ORIEL_SETTINGS_KINDS; kind++) {
        free(settings->files[kind].path);
        free(settings->files[kind].text);
    }
}

static const char blanks[] = " \t\r";

/* Copies a part of a line without the blanks around it. Returns false if it does not fit. */
static bool part_copy(const char *from, const char *end, char *out, size_t room)
{
    while (from < end && strchr(blanks, *from) != NULL)
        from++;
    while (end > from && strchr(blanks, end[-1]) != NULL)
        end--;
    size_t len = (size_t)(end - from);
    if (len >= room)
        return false;
    memcpy(out, from, len);
    out[len] = '\0';
    return true;
}

/* Where a comment begins, or the end of the line. */
static const char *comment_find(const char *at, const char *end)
{
    for (const char *mark = at; mark < end; mark++)
        if (*mark == '#' && (mark == at || strchr(blanks, mark[-1]) != NULL))
            return mark;
    return end;
}

static const char *line_parse(const char *at, const char *end, struct oriel_setting *out)
{
    const char *equals = memchr(at, '=', (size_t)(end - at));
    if (equals == NULL || equals == at)
        return "not NAME = VALUE";
    if (!part_copy(at, equals, out->name, sizeof out->name))
        return "the name is too long";
    if (out->name[0] == '\0')
        return "not NAME = VALUE";
    (void)part_copy(equals + 1, end, out->value, sizeof out->value); /* it has a line's room */
    if (out->value[0] == '"' || out->value[0] == '\'')
        return "values are written without quotes";
    return NULL;
}

bool oriel_settings_next(const char **at, unsigned *line, struct oriel_setting *out)
{
    while (**at != '\0') {
        const char *start = *at;
        const char *end = start + strcspn(start, "\n");
        *at = end + (*end == '\n');
        out->line = ++*line;
        out->name[0] = out->value[0] = '\0';
        const char *last = comment_find(start, end);
        if (start + strspn(start, blanks) >= last)
            continue;
        out->mistake = end - start >= ORIEL_SETTINGS_LINE_BYTES ? "longer than 4095 bytes"
                                                                : line_parse(start, last, out);
        return true;
    }
    return false;
}
