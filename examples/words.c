/* Reads a text and splits it into words: the part of the word count that does not involve windows.
 * Every rank has the same words in the same order, because all split the same bytes. */
#define _POSIX_C_SOURCE 200809L
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BROADCAST_BYTES = 1 << 28 };

uint64_t hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t text_hash(const char text[WORD_BYTES])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < WORD_BYTES && text[i]; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return (hash_mix(hash) | 2) & ~UINT64_C(1);
}

static char lower_letter(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    if (c < 'a' || c > 'z')
        return '\0';
    return c;
}

size_t text_split(const char *text, size_t len_bytes, struct word *words)
{
    size_t found = 0;
    for (size_t at = 0; at < len_bytes; at++) {
        struct word word = {0};
        size_t letters = 0;
        for (char c; at < len_bytes && (c = lower_letter(text[at])) != 0; at++, letters++)
            if (letters < WORD_BYTES)
                word.text[letters] = c;
        if (letters == 0)
            continue;
        if (words) {
            word.hash = text_hash(word.text);
            words[found] = word;
        }
        found++;
    }
    return found;
}

/* Returns the file's contents, to be freed, or NULL with errno set. */
static char *file_read(const char *path, size_t *len_bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0, used = 0;

    if (!file)
        return NULL;
    do {
        room = room ? 2 * room : 1 << 16;
        char *larger = realloc(text, room);
        if (!larger) {
            free(text);
            fclose(file);
            errno = ENOMEM;
            return NULL;
        }
        text = larger;
        used += fread(text + used, 1, room - used, file);
    } while (used == room);
    int failed = ferror(file) ? errno : 0;
    fclose(file);
    if (failed) {
        free(text);
        errno = failed;
        return NULL;
    }
    *len_bytes = used;
    return text;
}

char *text_load(const char *path, int rank, size_t *len_bytes)
{
    char *text = NULL;
    uint64_t head[2] = {0, 0}; /* errno, length */

    if (rank == 0) {
        size_t read_bytes = 0;
        text = file_read(path, &read_bytes);
        head[0] = text ? 0 : (uint64_t)errno;
        head[1] = read_bytes;
    }
    MPI_Bcast(head, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (head[0] != 0) {
        if (rank == 0)
            fprintf(stderr, "wordcount: cannot read %s: %s\n", path, strerror((int)head[0]));
        return NULL;
    }
    if (rank != 0)
        text = malloc(head[1] + 1);
    if (!text) {
        fprintf(stderr, "wordcount: rank %d has no memory for a text of %" PRIu64 " bytes\n", rank,
                head[1]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (uint64_t at = 0; at < head[1]; at += BROADCAST_BYTES) {
        uint64_t left = head[1] - at;
        MPI_Bcast(text + at, left < BROADCAST_BYTES ? (int)left : BROADCAST_BYTES, MPI_BYTE, 0,
                  MPI_COMM_WORLD);
    }
    *len_bytes = head[1];
    return text;
}
