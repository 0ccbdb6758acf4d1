// The program of extensions.c as C++.
#include "extensions.c"
