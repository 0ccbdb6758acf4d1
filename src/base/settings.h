/* Settings files: where they are, whether this process may read them, and their syntax. What a name
 * or a value means is decided in options.c. */
#ifndef ORIEL_BASE_SETTINGS_H
#define ORIEL_BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The kinds of settings files, from the one that decides to the one that yields. */
enum oriel_settings_kind {
    ORIEL_SETTINGS_NAMED,  /* the file that ORIEL_CONFIG names */
    ORIEL_SETTINGS_FOLDER, /* oriel.conf in the folder in which the process was started */
    ORIEL_SETTINGS_USER,   /* oriel/oriel.conf in $XDG_CONFIG_HOME or ~/.config */
    ORIEL_SETTINGS_SYSTEM, /* etc/oriel.conf below the installation's prefix, /etc for /usr */
    ORIEL_SETTINGS_KINDS
};

enum {
    ORIEL_SETTINGS_FILE_BYTES = 65536, /* of a file, at most */
    ORIEL_SETTINGS_LINE_BYTES = 4096,  /* of a line, at most */
};

struct oriel_settings_file {
    enum oriel_settings_kind kind;
    char *path;   /* NULL if there is no such path, for example without HOME */
    char *text;   /* the contents, ended by a 0 byte; NULL if the file was not read */
    dev_t device; /* with inode: identifies the file, which is read only once */
    ino_t inode;
    /* "read", or why it was not read */
    char state[160];
    /* not read, although it is there or was asked for: users must learn why */
    bool is_refused;
};

struct oriel_settings {
    struct oriel_settings_file files[ORIEL_SETTINGS_KINDS];
};

/* Reads the settings files of this process. A process with privileges of its own (set-user-id,
 * capabilities) reads the system's file only. */
void oriel_settings_open(struct oriel_settings *out);

/* Reads the file at file->path. Fills in the other fields. */
void oriel_settings_file_read(struct oriel_settings_file *file);

void oriel_settings_close(struct oriel_settings *settings);

/* One line that sets something, or is wrong. */
struct oriel_setting {
    unsigned line;       /* counted from 1 */
    const char *mistake; /* what is wrong with it; NULL if name and value are valid */
    char name[64];
    char value[ORIEL_SETTINGS_LINE_BYTES];
};

/* The next such line at *at, the rest of a text. *line is the number of lines before it. Returns
 * false after the last. */
bool oriel_settings_next(const char **at, unsigned *line, struct oriel_setting *out);

#endif
