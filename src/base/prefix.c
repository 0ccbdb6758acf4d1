/* Derives the installation's prefix from the path of the file that has this code:
 * PREFIX/bin/oriel or PREFIX/lib/oriel/HOST/liboriel.so. The installation may have been moved, or
 * reached through links. */
#include "base/prefix.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Removes the end of a path. Returns false if the path does not have that end. */
static bool end_remove(char *path, const char *end)
{
    size_t len = strlen(path);
    size_t end_len = strlen(end);
    if (len < end_len || strcmp(path + len - end_len, end) != 0)
        return false;
    path[len - end_len] = '\0';
    return true;
}

static bool name_remove(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

bool oriel_prefix_find(char out[PATH_MAX])
{
    Dl_info own;
    struct link_map *object = NULL;
    void *address = (void *)(uintptr_t)oriel_prefix_find;
    /* the executable has no name here */
    return dladdr1(address, &own, (void **)&object, RTLD_DL_LINKMAP) != 0 &&
           realpath(object->l_name[0] == '\0' ? "/proc/self/exe" : object->l_name, out) != NULL &&
           name_remove(out) &&
           (end_remove(out, "/bin") || (name_remove(out) && end_remove(out, "/lib/oriel")));
}
