/* Reads source files whole and finds their lines. A file that is newer than the module that was
 * built from it no longer has the lines of the debug information. */
#include "cli/check/source_lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"

enum { FILES = 64, FILE_BYTES_MAX = 1 << 26 };

struct source_file {
    char *path, *bytes;
    size_t len_bytes;
    struct timespec changed;
};
static struct source_file source_files[FILES];
static size_t source_files_count;

static void file_read(struct source_file *file)
{
    struct stat status;
    FILE *in = fopen(file->path, "re");
    if (in != NULL && fstat(fileno(in), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size < FILE_BYTES_MAX) {
        file->bytes = oriel_alloc((size_t)status.st_size + 1);
        file->len_bytes = fread(file->bytes, 1, (size_t)status.st_size, in);
        file->changed = status.st_mtim;
    }
    if (in != NULL)
        fclose(in);
}

static const struct source_file *file_find(const char *path)
{
    for (size_t i = 0; i < source_files_count; i++)
        if (strcmp(source_files[i].path, path) == 0)
            return &source_files[i];
    if (source_files_count == FILES) {
        source_files_count--;
        free(source_files[source_files_count].path);
        free(source_files[source_files_count].bytes);
    }
    struct source_file *file = &source_files[source_files_count++];
    *file = (struct source_file){.path = oriel_format("%s", path)};
    file_read(file);
    return file;
}

static bool is_newer(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static const char *line_find(const struct source_file *file, uint32_t number, size_t *len_bytes)
{
    const char *at = file->bytes;
    const char *end = file->bytes + file->len_bytes;
    for (uint32_t i = 1; at < end; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop == NULL ? end : stop;
        *len_bytes = (size_t)(stop - at) - (stop > at && stop[-1] == '\r');
        if (i == number)
            return at;
        at = stop + 1;
    }
    return NULL;
}

enum oriel_source_state oriel_source_line(const struct oriel_code_address *place, const char **line,
                                          size_t *len_bytes)
{
    struct stat module;
    if (place->file[0] == '\0' || place->line == 0)
        return ORIEL_SOURCE_MISSING;
    const struct source_file *file = file_find(place->file);
    if (file->bytes == NULL)
        return ORIEL_SOURCE_MISSING;
    if (place->module[0] != '\0' && stat(place->module, &module) == 0 &&
        is_newer(&file->changed, &module.st_mtim))
        return ORIEL_SOURCE_NEWER;
    *line = line_find(file, place->line, len_bytes);
    return *line == NULL ? ORIEL_SOURCE_MISSING : ORIEL_SOURCE_READ;
}

const char *oriel_source_line_before(const struct oriel_code_address *place, size_t *len_bytes)
{
    return place->line < 2 ? NULL : line_find(file_find(place->file), place->line - 1, len_bytes);
}
