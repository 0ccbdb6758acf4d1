/* Prints the text of all kernels as one module, for test_kernel_texts.py. */
#include "gpu/cuda/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each text begins with the same head, up to its first kernel. The number makes names unique. */
static void print(char *text, int number)
{
    char *kernel = text != NULL ? strstr(text, ".visible") : NULL;
    char *parameters = kernel != NULL ? strchr(kernel, '(') : NULL;
    if (parameters == NULL) {
        fprintf(stderr, "kernel %d has no text\n", number);
        exit(1);
    }
    if (number == 0)
        printf("%.*s", (int)(kernel - text), text);
    printf("%.*s%d%s", (int)(parameters - kernel), kernel, number, parameters);
    free(text);
}

int main(void)
{
    const struct oriel_cu_element elements[] = {
        {'s', 1}, {'s', 2}, {'s', 4}, {'s', 8}, {'u', 1},
        {'u', 2}, {'u', 4}, {'u', 8}, {'f', 4}, {'f', 8},
    };
    int number = 0;
    print(oriel_cu_copy_text(), number++);
    for (unsigned i = 0; i < sizeof elements / sizeof elements[0]; i++)
        for (enum oriel_operator op = 0; op < ORIEL_OPERATOR_COUNT; op++)
            if (oriel_cu_update_exists(elements[i], op))
                print(oriel_cu_update_text(elements[i], op), number++);
    return 0;
}
