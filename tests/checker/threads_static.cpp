// A static object of C++, whose guard orders the threads that reach it.
#include <cstdint>

namespace
{

struct made {
    explicit made(void (*make)())
    {
        make();
    }
};

} // namespace

extern "C" void static_object_make(void (*make)())
{
    static made object(make);
}
